"""The context of a stream in one run: the argument ``context`` of its function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property
from typing import Any, cast

from balog.tap.bookmarks import Progress, State
from balog.tap.bookmarks.order import order_of
from balog.tap.bookmarks.query_start import POSITION
from balog.tap.bookmarks.state import RESERVED_KEYS
from balog.tap.catalog import CatalogEntry, PropertySelection
from balog.tap.errors import TapError
from balog.tap.streams import Stream


@dataclass(slots=True, eq=False)
class Emitted:
    """A record for another stream than the one whose function yields it."""

    stream: str
    record: dict[str, Any]


def replication_key_of(stream: Stream, entry: CatalogEntry) -> str | None:
    """Return the replication key of a run: the catalog's, or the stream's own; None without INCREMENTAL.

    With a bookmark function alone it is ``bookmark``, which is no property.
    """
    if (entry.replication_method or stream.method) != "INCREMENTAL":
        return None
    return entry.replication_key or stream.replication_key or ("bookmark" if stream.bookmark_of else None)


class Context:
    """One stream in one sync.

    Its methods that write are those of the argument ``run``: the stream's ``StreamSync``, or None outside of a run.

    Attributes:
        stream: the stream's name.
        config: the tap's config, as its spec returned it.
        bookmark: the value to start from: the state's minus the lookback, or ``start_date`` of the config; None on a
            first run without one, and for full tables.
        entry: the stream's catalog entry: schema, metadata, selection.
        log: a logger with the stream bound.
        now: the start of the run, in UTC. A window can end here and the next run's begin here.
        parent: the parent's record as its source returned it; None for top-level streams.
        log_position: the position that ``set_bookmark`` set last, in any run, for a stream without a replication key;
            any JSON.
        is_first_run: the state has no bookmark of this run's replication key, and no position.
        has_emitted: ``to`` was called, so lists may contain its results.
    """

    has_emitted = False

    def __init__(
        self,
        stream: Stream,
        entry: CatalogEntry,
        config: Any,
        state: State,
        log: Any,
        *,
        client: Callable[[], Any] = lambda: None,
        now: datetime | None = None,
        start_date: str | None = None,
        parent: Any = None,
        run: Any = None,
    ) -> None:
        self.stream, self.parent = stream.name, parent
        self.config = config
        self.entry = entry
        self.log = log
        self.now = now or datetime.now(timezone.utc)
        self._stream, self._state, self._make_client, self._run = stream, state, client, run
        self._start_date = start_date
        self._used: set[str] = set()
        self._key = replication_key_of(stream, entry)
        kept = state.get(stream.name, self._key) if self._key else None
        self.log_position: Any = state.get(stream.name, POSITION)
        self.is_first_run = kept is None and self.log_position is None
        self.bookmark: Any = kept
        if self.bookmark is None and self._key:
            self.bookmark = order_of(entry.schema, self._key).first(self.start_date)

    def restart(self, bookmark: Any) -> None:
        """Set where the run reads the source from: a bookmark, or a position of a stream without a replication key."""
        self.bookmark = bookmark if self._key else None
        if self._key is None and bookmark is None:
            self.is_first_run = True

    def begin(self, parent: Any, progress: Progress) -> None:
        """Begin to read the source, that of a substream for one record of its parent."""
        self.parent = parent
        if self._key is None:
            self.log_position = progress.bookmark

    @contextmanager
    def starting_at(self, bookmark: Any) -> Iterator[None]:
        """Replace the bookmark inside the ``with`` body, by that of an item of ``for_each``."""
        before, self.bookmark = self.bookmark, bookmark
        try:
            yield
        finally:
            self.bookmark = before

    @property
    def client(self) -> Any:
        """The stream's own client, or the tap's; made on first use."""
        return self._make_client()

    @property
    def start_date(self) -> str | None:
        """The config's ``start_date``."""
        if self._start_date is not None:
            return self._start_date
        config = self.config
        start_date = config.get("start_date") if isinstance(config, dict) else getattr(config, "start_date", None)
        return None if start_date is None else str(start_date)

    @property
    def metadata(self) -> dict[str, Any]:
        """The catalog's metadata of the stream itself."""
        return self.entry.metadata.get((), {})

    @cached_property
    def selected(self) -> frozenset[str]:
        """The names of the selected properties, to query the source for only those."""
        return frozenset(PropertySelection(self.entry).names)

    @property
    def is_stopping(self) -> bool:
        """The run was asked to end: start nothing new."""
        return bool(self._run and self._run.is_stopping)

    @property
    def highest(self) -> Any:
        """The largest replication value of the records that this run has written so far; None before the first."""
        return self._writer().highest

    @property
    def positions(self) -> dict[str, Any]:
        """The positions of all streams that set one, by stream: ``log_position`` is this stream's."""
        return self._state.all(POSITION)

    def emit(self, record: Any, stream: str | None = None) -> None:
        """Write a record, or a list of them, now; for another declared stream if one is named.

        Records of streams that are not selected are dropped silently.

        Raises:
            TapError: there is no such stream.
            RecordError: see ``balog.tap.records.Policy``.
        """
        self._writer().emit(record, stream or self.stream)

    def quarantine(self, record: Any, reason: str) -> None:
        """Set a part of the source aside that is not a record, such as a line that cannot be decoded.

        Raises:
            RecordError: the stream's policy is ``fail``, or there are too many.
        """
        self._writer().quarantine(record, reason)

    def to(self, stream: str, record: dict[str, Any]) -> Emitted:
        """Return a record for another stream, which a generator yields, alone or in a list."""
        self.has_emitted = True
        return Emitted(stream, record)

    def of(self, stream: str) -> Context:
        """Return the context of a stream that this one emits records for: its bookmark, its selection."""
        return cast("Context", self._writer().context_of(stream))

    def set_bookmark(self, value: Any) -> None:
        """Set the bookmark: all records up to it were yielded. It is a replication value, or a position of any JSON.

        It is written with the next state. A replication value only moves the bookmark forward. The bookmark of a
        substream is written when all parents are complete.
        """
        self._writer().set_bookmark(value)
        if self._key is None:
            self.log_position = value

    def kept(self, name: str) -> Any:
        """Return the value that ``keep`` stored under a name, in this run or an earlier one; None if there is none."""
        self._used.add(name)
        return self._state.get(self.stream, name)

    def keep(self, name: str, value: Any, *, at_once: bool = False) -> None:
        """Store a value of the tap's own in the state: any JSON, written with the next state; None removes it.

        Args:
            at_once: write the state now; the bookmark in it does not change.

        Raises:
            TapError: the state uses that name for the bookmark.
        """
        if name in RESERVED_KEYS or name in (self._key, self._stream.replication_key):
            raise TapError(f"stream {self.stream!r}: keep({name!r}): the bookmark has this name; choose another")
        self._used.add(name)
        self._state.set(self.stream, name, value)
        if at_once:
            self._writer().checkpoint(asked=False)

    def report_unused(self) -> None:
        """Warn of keys in the stream's state that nothing has used: a name may have changed."""
        known = {self._key, self._stream.replication_key, *self._stream.replication_keys}
        if unused := self._state.entry(self.stream).keys() - RESERVED_KEYS - known - self._used:
            self.log.warning("The state has keys that the stream does not use; they are kept", keys=sorted(unused))

    def checkpoint(self, value: Any = None) -> None:
        """Write the state now.

        With a value, all records up to it were yielded, in whatever order: the end of a window. Without one, all up to
        the largest replication value so far were.
        """
        if value is not None:
            self.set_bookmark(value)
        self._writer().checkpoint(asked=value is None)

    @contextmanager
    def full_table(self) -> Iterator[int]:
        """Write the records inside the ``with`` body as a new version of the table, which replaces all other rows.

        The records carry ``version``, and ACTIVATE_VERSION is written when the body ends, but not if it raises.
        """
        with self._writer().full_table() as version:
            yield version
        if (self.entry.replication_method or self._stream.method) == "FULL_TABLE":
            self.log_position = None

    def _writer(self) -> Any:
        if self._run is None:
            raise TapError(f"stream {self.stream!r}: this context belongs to no run: nothing can be written")
        return self._run
