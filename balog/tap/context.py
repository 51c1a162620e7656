"""What a stream's function is given beside the client."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime, timezone
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from balog.tap.bookmarks import State
from balog.tap.bookmarks.state import NO_KEYS
from balog.tap.catalog import Entry, selected_properties
from balog.tap.errors import TapError
from balog.tap.streams import Stream

if TYPE_CHECKING:
    from balog.metrics import Timer

__all__ = ["POSITION", "Context", "Emitted", "Writing", "replication_key_of"]

POSITION = "position"
"""The key of a bookmark that is no replication key's value: a position in a log, or in a full table."""


class Emitted:
    """A record for another stream than the one whose function yields it."""

    __slots__ = ("record", "stream")

    def __init__(self, stream: str, record: dict[str, Any]) -> None:
        self.stream = stream
        self.record = record


class Writing(Protocol):
    """The side of a run that a context hands on to: what is written of one stream."""

    @property
    def is_stopping(self) -> bool:
        """The run was asked to end."""

    def emit(self, record: Any, stream: str) -> None:
        """See ``Context.emit``."""

    def set_bookmark(self, value: Any) -> None:
        """See ``Context.set_bookmark``."""

    def checkpoint(self, *, asked: bool) -> None:
        """Write the state; ``asked``: with the largest replication value so far in it."""

    def full_table(self) -> AbstractContextManager[int]:
        """See ``Context.full_table``."""

    def context_of(self, stream: str) -> Context:
        """See ``Context.of``."""


def replication_key_of(stream: Stream, entry: Entry) -> str | None:
    """Return the replication key of a run: the catalog's choice, else the stream's own; None without INCREMENTAL."""
    method = entry.replication_method or stream.method
    return (entry.replication_key or stream.replication_key) if method == "INCREMENTAL" else None


class Context:
    """One stream in one sync.

    Attributes:
        stream: the stream's name.
        config: the tap's, as its spec gives it.
        bookmark: where to go on from: the state's, else ``start_date`` of the config, less the lookback; None on a
            first run without one, and for full tables.
        entry: the stream's catalog entry: schema, metadata, selection.
        log: a logger with the stream bound.
        now: one instant for the whole run, in UTC: where a window ends that is to begin there in the next.
        parent: the record that a substream is asked for, as the parent's source gave it; None at the top.
        log_position: what ``set_bookmark`` said last of a stream that is not replicated by a key, in any run; any JSON.
        is_first_run: the state has no bookmark of the replication key that this run uses, and no position.
        has_emitted: ``to`` was asked, so that lists may hold what it gave.
    """

    parent: dict[str, Any] | None = None
    has_emitted = False

    def __init__(
        self,
        stream: Stream,
        entry: Entry,
        config: Any,
        state: State,
        log: Any,
        *,
        client: Callable[[], Any] = lambda: None,
        now: datetime | None = None,
        bookmark: Any = None,
        start_date: str | None = None,
        writing: Writing | None = None,
    ) -> None:
        self.stream = stream.name
        self.config = config
        self.entry = entry
        self.log = log
        self.now = now or datetime.now(timezone.utc)
        self._stream, self._state, self._make_client, self._writing = stream, state, client, writing
        self._start_date = start_date
        self._key = replication_key_of(stream, entry)
        said = state.get(stream.name, self._key) if self._key else None
        self.log_position: Any = state.get(stream.name, POSITION)
        self.is_first_run = said is None and self.log_position is None
        self.bookmark: Any = said if bookmark is None else bookmark
        if self.bookmark is None and self._key:
            self.bookmark = self.start_date

    @property
    def client(self) -> Any:
        """The tap's client, or the stream's own; made when it is first asked for."""
        return self._make_client()

    @property
    def start_date(self) -> str | None:
        """The config's ``start_date``."""
        if self._start_date is not None:
            return self._start_date
        config = self.config
        found = config.get("start_date") if isinstance(config, dict) else getattr(config, "start_date", None)
        return None if found is None else str(found)

    @property
    def metadata(self) -> dict[str, Any]:
        """What the catalog says of the stream itself."""
        return self.entry.metadata.get((), {})

    @cached_property
    def selected(self) -> frozenset[str]:
        """The names of the properties that are wanted, so that a source may be asked for those alone."""
        return frozenset(selected_properties(self.entry))

    @property
    def is_stopping(self) -> bool:
        """The run was asked to end: nothing new should be begun."""
        return self._writing is not None and self._writing.is_stopping

    def emit(self, record: Any, stream: str | None = None) -> None:
        """Write a record, or a list of them, now; of another declared stream when one is named.

        What the catalog does not select is left out in silence, as with records that are yielded.

        Raises:
            TapError: there is no such stream.
            RecordError: see ``balog.tap.records.Policy``.
        """
        self._run().emit(record, stream or self.stream)

    def to(self, stream: str, record: dict[str, Any]) -> Emitted:
        """Give what a generator yields, alone or in a list, to write a record of another stream in its place."""
        self.has_emitted = True
        return Emitted(stream, record)

    def of(self, stream: str) -> Context:
        """Give the context of a stream that this one gives too: its bookmark, its selection."""
        return self._run().context_of(stream)

    def set_bookmark(self, value: Any) -> None:
        """Say that all up to here was given: a replication value, or a position of any JSON shape.

        It is in the next state that is written. A replication value only ever moves the bookmark forward. That of a
        substream is written when all parents are done.
        """
        self._run().set_bookmark(value)

    def kept(self, name: str) -> Any:
        """Give what ``keep`` said under a name, in this run or one before; None when nothing did."""
        return self._state.get(self.stream, name)

    def keep(self, name: str, value: Any, *, at_once: bool = False) -> None:
        """Keep something of the tap's own beside the bookmark: any JSON value, in the next state; None takes it away.

        Args:
            at_once: the state is written now; the bookmark in it is as it was.

        Raises:
            TapError: the name is one that the bookmark itself has in the state.
        """
        if name in NO_KEYS or name in (self._key, self._stream.replication_key):
            raise TapError(f"stream {self.stream!r}: keep({name!r}): the stream's bookmark has that name; want another")
        self._state.set(self.stream, name, value)
        if at_once:
            self._run().checkpoint(asked=False)

    def checkpoint(self, value: Any = None) -> None:
        """Write the state now.

        With a value it says that all up to that was given, in whatever order: the end of a window. Without one it says
        so of the largest replication value so far, which is left out when records came out of order.
        """
        if value is not None:
            self.set_bookmark(value)
        self._run().checkpoint(asked=value is None)

    def full_table(self) -> AbstractContextManager[int]:
        """Write what comes inside as a new version of the table, which replaces the rows before at its end.

        The records carry ``version``, and ACTIVATE_VERSION is written when the body ends; not when it raises.
        """
        return self._run().full_table()

    def timer(self, endpoint: str) -> Timer:
        """Time a request: ``with context.timer("contacts"): …`` is a metric ``http_request_duration``."""
        from balog.metrics import http_request_timer

        return http_request_timer(endpoint)

    def _run(self) -> Writing:
        if self._writing is None:
            raise TapError(f"stream {self.stream!r}: this context is of no run: nothing can be written")
        return self._writing
