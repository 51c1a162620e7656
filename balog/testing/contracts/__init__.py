"""Contract suites: pytest classes to inherit, for topic backends, ledgers and sinks.

They need pytest and hypothesis, which balog itself does not: the extra ``testing``.
docs/reference/contract-suites.md defines the terms that they check, such as lag, in flight and receipts.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from balog.common.errors import MissingExtraError
from balog.common.lazy_exports import deferred

if TYPE_CHECKING:
    from balog.testing.contracts.ledgers import DurableLedgerContract, LedgerContract, OpenLedger
    from balog.testing.contracts.sinks import SinkContract, SinkPeer
    from balog.testing.contracts.topics import TopicContract

__all__ = ["DurableLedgerContract", "LedgerContract", "OpenLedger", "SinkContract", "SinkPeer", "TopicContract"]

if find_spec("pytest") is None or find_spec("hypothesis") is None:
    raise MissingExtraError("balog.testing.contracts", "testing")

_PACKAGE = "balog.testing.contracts."

__getattr__ = deferred(
    globals(),
    {
        "DurableLedgerContract": _PACKAGE + "ledgers",
        "LedgerContract": _PACKAGE + "ledgers",
        "OpenLedger": _PACKAGE + "ledgers",
        "SinkContract": _PACKAGE + "sinks",
        "SinkPeer": _PACKAGE + "sinks",
        "TopicContract": _PACKAGE + "topics",
    },
)
