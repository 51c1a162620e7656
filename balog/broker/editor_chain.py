"""Build the editors of a config in their order: read BATCHes, change records, write BATCHes, keep STATE."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec
from msgspec import Struct

from balog.broker.config import BrokerConfig
from balog.broker.editor import Chain, Editor, Line
from balog.broker.quarantine import Quarantine
from balog.broker.state import StateKeeper

_MAX_SCHEMAS_BYTES = 64 * 1024 * 1024


class _Stream(Struct):
    stream: str


_stream = msgspec.json.Decoder(_Stream)


class _SchemaMemory:
    """Keeps the last original SCHEMA of each stream, for the editors of a reloaded config."""

    is_strict = False
    types = frozenset({"SCHEMA"})
    streams: frozenset[str] | None = frozenset()

    def __init__(self) -> None:
        self.lines: dict[str, bytes] = {}
        self._bytes = 0

    def edit(self, kind: str, line: bytes) -> None:
        """See ``Editor``."""
        try:
            stream = _stream.decode(line).stream
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return
        size = len(line) - len(self.lines.get(stream, b""))
        if self._bytes + size <= _MAX_SCHEMAS_BYTES:
            self._bytes += size
            self.lines[stream] = line

    def due(self) -> Sequence[Line]:
        """See ``Editor``."""
        return ()

    end = due


class Chaining:
    """The editors of a broker, replaceable while the stream runs.

    Args:
        config: the broker's.
        say: takes one line for people.
        position: gives the number of the last event that was handed to the sinks.
        durable: gives the number up to which every event is safe.
        quarantine: where lines go that must not go on.
        sleep: waits so many seconds, or less when the broker is to stop.

    Attributes:
        chain: None when the config changes nothing.

    Raises:
        ConfigError: a rule that can't be; ``path`` says which.
    """

    def __init__(
        self,
        config: BrokerConfig,
        say: Callable[[str], None],
        *,
        position: Callable[[], int],
        durable: Callable[[], int],
        quarantine: Quarantine | None,
        sleep: Callable[[float], object],
    ) -> None:
        self._say = say
        self._quarantine = quarantine
        self._sleep = sleep
        self._memory = _SchemaMemory()
        self._editors = self._make(config)
        self._keeper: list[StateKeeper] = []
        if config.state is not None:
            self._keeper.append(StateKeeper(config.state, say, position=position, durable=durable))
        self.chain = self._join()

    def prepare(self, config: BrokerConfig) -> Callable[[], Iterable[Line]]:
        """Build the editors of another config. Changes of ``state`` apply only at the next start.

        Returns:
            What takes them into use, and gives what goes on first: rows that the old ones held, and every stream's
            SCHEMA as it is now.

        Raises:
            ConfigError: a rule that can't be.
            PipeError: a stream whose SCHEMA has come can't be changed so.
        """
        editors = self._make(config)
        schemas = list(Chain(editors).through([("SCHEMA", line) for line in self._memory.lines.values()]))

        def take() -> Iterable[Line]:
            held = list(Chain(self._editors).end())
            self._editors = editors
            self.chain = self._join()
            return [*held, *schemas]

        return take

    def close(self, went_on: bool) -> None:
        """Store the state; ``went_on`` is whether all output reached the target."""
        for keeper in self._keeper:
            keeper.close(went_on)

    def _join(self) -> Chain | None:
        editors: list[Editor] = [*self._editors, *self._keeper]
        if not editors:
            return None
        return Chain([self._memory, *editors] if self._editors else editors)

    def _make(self, config: BrokerConfig) -> list[Editor]:
        editors: list[Editor] = []
        records = None
        if config.records or config.schemas:
            from balog.broker.records.editor import RecordEditor

            records = RecordEditor(config.records, config.schemas, self._quarantine, self._say, self._sleep)
        if config.batch is not None or config.records:
            from balog.broker.batches.reader import BatchReader

            editors.append(BatchReader(config.batch, records, self._quarantine, self._say))
        if records is not None:
            editors.append(records)
        if config.batch is not None and config.batch.location is not None:
            from balog.broker.batches.writer import BatchWriter

            editors.append(BatchWriter(config.batch, self._quarantine, self._say))
        return editors
