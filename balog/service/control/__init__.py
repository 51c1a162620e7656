"""The control document's versions: the version store, validation, and how services apply versions."""

from balog.service.control.remote import Control, open_control
from balog.service.control.store import ControlError, DocumentVersion, ServiceStatus, VersionConflict
from balog.service.control.validation import check, read_document

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
