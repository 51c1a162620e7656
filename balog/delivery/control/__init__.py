"""Control: the document's versions in a store, who may change them how, and how services pick them up."""

from balog.delivery.control.checking import check, read_document
from balog.delivery.control.opening import open_control
from balog.delivery.control.store import Conflict, Control, ControlError, Entry, ServiceStatus

__all__ = [
    "Conflict",
    "Control",
    "ControlError",
    "Entry",
    "ServiceStatus",
    "check",
    "open_control",
    "read_document",
]
