"""Store STATE messages for the next run, and hold them until earlier events are safe.

What is kept is what went on. So the place of the broker counts: ``tap | target | balog broker`` keeps only what the
target has confirmed; before the target it keeps what the tap said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, ClassVar, NamedTuple

import msgspec
from msgspec import Meta, Raw, Struct, field

from balog.broker.editor import Line
from balog.broker.outbox import Outbox
from balog.common.errors import ConfigError
from balog.common.storage import Options, open_storage

MAX_HELD = 1000
MAX_HELD_BYTES = 16 << 20
CLOSE_SECONDS = 30.0
"""How long, at the end, storing the last STATE may take."""


_Location = Annotated[str, Meta(min_length=1, max_length=2000)]


class StateConfig(Struct, forbid_unknown_fields=True, kw_only=True):
    """What happens to STATE messages; all of them go on byte for byte."""

    examples: ClassVar = (
        {
            "store": "s3://bucket/state.json",
            "options": {"endpoint_url": "http://localhost:9000"},
        },
    )

    store: Annotated[
        _Location | None,
        Meta(description="The file, as a path or a URL (s3://BUCKET/state.json), that holds the last STATE's value."),
    ] = None
    options: Options = field(default_factory=dict)
    every: Annotated[float, Meta(ge=0, le=3600, description="Seconds between two writes of the store at least.")] = 1.0
    hold: Annotated[
        bool, Meta(description="Let a STATE go on only when every event before it is safe with each sink.")
    ] = False

    def __post_init__(self) -> None:
        if self.store is None and not self.hold:
            raise ValueError("state has nothing to do; give store or hold")
        if self.store is None and self.options:
            raise ValueError("options are for a store; give its URL as store")


class _Held(NamedTuple):
    position: int
    line: bytes


class _Message(Struct):
    value: Raw


_message = msgspec.json.Decoder(_Message)


def read_value(line: bytes) -> bytes | None:
    """Return the encoded value of a STATE message; None if it is missing or null."""
    try:
        value = bytes(_message.decode(line).value)
        str(value, "utf-8")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return None if value == b"null" else value


class StateKeeper:
    """An ``Editor`` of STATE messages. It regards its output as written at the next call of ``due``.

    A STATE that is held keeps no RECORD waiting: it goes on later, in its order. Of too many held ones some in the
    middle are dropped, as each later one covers those before it.

    Args:
        config: what to do.
        say: called with one line for the user.
        position: returns the number of the last event that was put into the sinks' queues.
        durable: returns the number up to which every event is safe.

    Raises:
        ConfigError: a store that can't be; ``path`` is the place in the broker's config.
        MissingExtraError: the packages for the store's URL are not installed.
    """

    is_strict = False
    types = frozenset({"STATE"})
    streams: frozenset[str] | None = frozenset()

    def __init__(
        self,
        config: StateConfig,
        say: Callable[[str], None],
        *,
        position: Callable[[], int],
        durable: Callable[[], int],
    ) -> None:
        self._say = say
        self._position = position
        self._durable = durable
        self._hold = config.hold
        self._held: list[_Held] = []
        self._held_bytes = 0
        self._given: list[bytes] = []  # sent, not yet confirmed
        self._unreadable = 0
        self._store = _store_outbox(config, say) if config.store is not None else None

    def edit(self, kind: str, line: bytes) -> Sequence[Line] | None:
        """See ``Editor``."""
        if self._hold:
            position = self._position()
            if self._held or self._durable() < position:
                self._keep(_Held(position, line))
                return ()
        self._give(line)
        return None

    def due(self) -> Sequence[Line]:
        """See ``Editor``."""
        self._commit()
        return self._release()

    def end(self) -> Sequence[Line]:
        """See ``Editor``; STATE that may not pass now is dropped."""
        lines = self._release()
        if self._held:
            self._say(
                f"{len(self._held)} STATE messages were withheld, for events before them are not safe; "
                "the next run begins at the STATE before"
            )
            self._held, self._held_bytes = [], 0
        return lines

    def close(self, went_on: bool) -> None:
        """Store the last STATE that passed, for at most 30 seconds; report a failure.

        Args:
            went_on: whether all that was given has gone on; False when the target closed the pipe.
        """
        if went_on:
            self._commit()
        self._given = []
        if self._unreadable:
            self._say(
                f"{self._unreadable} STATE messages had no value that can be read; they passed and are not stored"
            )
        if self._store is not None:
            self._store.close(CLOSE_SECONDS)

    def _give(self, line: bytes) -> None:
        if self._store:
            self._given.append(line)

    def _commit(self) -> None:
        lines, self._given = self._given, []
        for line in lines:
            value = read_value(line)
            if value is None:
                self._unreadable += 1
                continue
            if self._store:
                self._store.put(value)

    def _release(self) -> list[Line]:
        if not self._held:
            return []
        durable = self._durable()
        count = 0
        while count < len(self._held) and self._held[count].position <= durable:
            self._held_bytes -= len(self._held[count].line)
            count += 1
        free, self._held = self._held[:count], self._held[count:]
        for state in free:
            self._give(state.line)
        return [("STATE", state.line) for state in free]

    def _keep(self, state: _Held) -> None:
        self._held.append(state)
        self._held_bytes += len(state.line)
        while len(self._held) > 1 and (len(self._held) > MAX_HELD or self._held_bytes > MAX_HELD_BYTES):
            # The first is the next one to pass. If it were dropped each time, none would ever pass.
            first, *middle, last = self._held
            kept = [first, *middle[1::2], last] if middle else [last]
            self._held, self._held_bytes = kept, sum(len(held.line) for held in kept)


def _store_outbox(config: StateConfig, say: Callable[[str], None]) -> Outbox:
    try:
        storage = open_storage(config.store or "", config.options, field="store")
    except ConfigError as error:
        raise ConfigError(error.reason, error.source, f"$.state.{error.path}") from None
    return Outbox(
        f"state {config.store}",
        lambda value: storage.write(value + b"\n"),
        say,
        pause=config.every,
    )
