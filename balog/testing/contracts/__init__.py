"""Contract suites: pytest classes to inherit, for topic backends, ledgers and sinks.

They need pytest and hypothesis, which balog itself does not: the extra ``testing``.
docs/reference/contract-suites.md defines the terms that they check, such as lag, in flight and receipts.
"""

from balog.common.errors import MissingExtraError

try:
    from balog.testing.contracts.ledgers import DurableLedgerContract, LedgerContract, OpenLedger
    from balog.testing.contracts.sinks import SinkContract, SinkPeer
    from balog.testing.contracts.topics import TopicContract
except ModuleNotFoundError as error:
    if error.name not in ("pytest", "hypothesis"):
        raise
    raise MissingExtraError("balog.testing.contracts", "testing") from None

__all__ = ["DurableLedgerContract", "LedgerContract", "OpenLedger", "SinkContract", "SinkPeer", "TopicContract"]
