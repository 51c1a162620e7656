"""Build the editors of a config in their order: read BATCHes, change records, write BATCHes, keep STATE."""

from __future__ import annotations

from collections.abc import Callable

from balog.broker.config import BrokerConfig
from balog.broker.editor import Chain, Editor
from balog.broker.quarantine import Quarantine
from balog.broker.state import StateKeeper


def build_editors(
    config: BrokerConfig,
    say: Callable[[str], None],
    *,
    position: Callable[[], int],
    durable: Callable[[], int],
    quarantine: Quarantine | None,
) -> tuple[Chain | None, StateKeeper | None]:
    """Return the editors of a broker, and among them the one that stores STATE, for its ``close``; None for none.

    Args:
        config: the broker's.
        say: called with one line for the user.
        position: returns the number of the last event that was put into the sinks' queues.
        durable: returns the number up to which every event is safe.
        quarantine: the file for lines that must not pass.

    Raises:
        ConfigError: an invalid rule; ``path`` is its place.
    """
    editors: list[Editor] = []
    records = keeper = None
    if config.records:
        from balog.broker.records.editor import RecordEditor

        records = RecordEditor(config.records, quarantine, say)
    if config.batch is not None or config.records:
        from balog.broker.batches.reader import BatchReader

        editors.append(BatchReader(config.batch, records, quarantine, say))
    if records is not None:
        editors.append(records)
    if config.batch is not None and config.batch.location is not None:
        from balog.broker.batches.writer import BatchWriter

        editors.append(BatchWriter(config.batch, quarantine, say))
    if config.state is not None:
        keeper = StateKeeper(config.state, say, position=position, durable=durable)
        editors.append(keeper)
    return (Chain(editors) if editors else None), keeper
