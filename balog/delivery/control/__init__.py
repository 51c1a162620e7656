"""Control: the document's versions in a store, who may change them how, and how services pick them up."""

from balog.delivery.control.factory import open_control
from balog.delivery.control.store import Control, ControlError, DocumentVersion, ServiceStatus, VersionConflict
from balog.delivery.control.validation import check, read_document

__all__ = [
    "Control",
    "ControlError",
    "DocumentVersion",
    "ServiceStatus",
    "VersionConflict",
    "check",
    "open_control",
    "read_document",
]
