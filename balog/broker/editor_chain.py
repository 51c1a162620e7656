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
        self._say = say
        self._quarantine = quarantine
        self._observers = observers
        self._memory = _SchemaMemory()
        self._editors = self._make(config)
        self._keeper: list[StateKeeper] = []
        if config.state is not None:
            self._keeper.append(StateKeeper(config.state, say, position=position, durable=durable))
        self.chain = self._join()

    def prepare(self, config: BrokerConfig) -> Callable[[], Iterable[Line]]:
        """Build the editors of another config. Changes of ``state`` apply only at the next start.

        Returns:
            A function that applies them and returns the first lines to pass: rows that the old editors held, and the
            new SCHEMA of every stream.

        Raises:
            ConfigError: an invalid rule.
            PipeError: the rules can't change a stream whose SCHEMA has passed.
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
        if self._editors:
            editors.insert(0, self._memory)
        editors[:0] = self._observers
        return Chain(editors) if editors else None

    def _make(self, config: BrokerConfig) -> list[Editor]:
        editors: list[Editor] = []
        records = None
        if config.records or config.schemas:
            from balog.broker.records.editor import RecordEditor

            records = RecordEditor(config.records, config.schemas, self._quarantine, self._say)
        if config.batch is not None or config.records:
            from balog.broker.batches.reader import BatchReader

            editors.append(BatchReader(config.batch, records, self._quarantine, self._say))
        if records is not None:
            editors.append(records)
        if config.batch is not None and config.batch.location is not None:
            from balog.broker.batches.writer import BatchWriter

            editors.append(BatchWriter(config.batch, self._quarantine, self._say))
        return editors
