"""Build the editors of a config in their order: read BATCHes, change records, write BATCHes, keep STATE."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from balog.broker.config import BrokerConfig
from balog.broker.editor import Chain, Editor
from balog.broker.quarantine import Quarantine
from balog.broker.state import StateKeeper


class EditorChain:
    """The editors of a broker.

    Args:
        config: the broker's.
        say: called with one line for the user.
        position: returns the number of the last event that was put into the sinks' queues.
        durable: returns the number up to which every event is safe.
        quarantine: the file for lines that must not pass.
        observers: editors that see each original SCHEMA and change nothing.

    Attributes:
        chain: None when the config changes nothing.

    Raises:
        ConfigError: an invalid rule; ``path`` is its place.
    """

    def __init__(
        self,
        config: BrokerConfig,
        say: Callable[[str], None],
        *,
        position: Callable[[], int],
        durable: Callable[[], int],
        quarantine: Quarantine | None,
        observers: Sequence[Editor] = (),
    ) -> None:
        self._keeper: StateKeeper | None = None
        editors = [*observers, *_build(config, quarantine, say)]
        if config.state is not None:
            self._keeper = StateKeeper(config.state, say, position=position, durable=durable)
            editors.append(self._keeper)
        self.chain = Chain(editors) if editors else None

    def close(self, went_on: bool) -> None:
        """Store the state; ``went_on`` is whether all output reached the target."""
        if self._keeper is not None:
            self._keeper.close(went_on)


def _build(config: BrokerConfig, quarantine: Quarantine | None, say: Callable[[str], None]) -> list[Editor]:
    editors: list[Editor] = []
    records = None
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
    return editors
