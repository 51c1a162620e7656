"""The sync of one stream in one run: its source is read, its records written, its substreams synced."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import closing, contextmanager
from typing import Any

from balog.tap.bookmarks import Progress
from balog.tap.bookmarks.query_start import POSITION
from balog.tap.catalog import CatalogEntry
from balog.tap.errors import LateDeclarationError, OutputError, RecordError, SyncError, TapError
from balog.tap.streams import Providers, Stream, inject
from balog.tap.streams.context import Context, Emitted, replication_key_of
from balog.tap.syncing.pipeline import RecordPipeline
from balog.tap.syncing.session import Session, SyncStats

_FLUSH_SECONDS = 5.0
"""After this time within one parent record, written records are flushed and the parents' bookmarks are checkpointed."""


class LimitReached(Exception):
    """No record of the stream is needed any more, because all substreams are over."""


class StreamSync:
    """The sync of one stream in one run, with its substreams.

    Args:
        session: the run.
        stream: the stream.
        parent: the sync of the parent.
        source: the sync of the stream whose function emits this one's records.
        active: see there; None for a top-level stream.
        is_emitted_only: the stream has a function of its own, but here another stream emits records for it. Its
            bookmark does not move, because its own source is not read. Its substreams are synced for these records.

    Attributes:
        active: all syncs of the top-level stream that is running, by name, and those of streams it emits for.
        entry: the catalog entry; an empty one if the catalog has none.
        is_selected: its records are written; otherwise it is read only for its substreams.
        is_over: it is not read again in this run: it failed, or its substreams are over.
        failure: its own error, or that of a stream above it.
        progress: its bookmarks.
        pipeline: writes its records; None if it is not selected.
        stats: the numbers of its records.
        context: the argument ``context`` of the stream's function.
        children: the syncs of its substreams.
        emitted: the syncs of the streams whose records its function also emits.
    """

    def __init__(
        self,
        session: Session,
        stream: Stream,
        parent: StreamSync | None = None,
        *,
        source: StreamSync | None = None,
        active: dict[str, StreamSync] | None = None,
        is_emitted_only: bool = False,
    ) -> None:
        self.session, self.stream, self.parent = session, stream, parent
        self.active: dict[str, StreamSync] = {} if active is None else active
        entry = session.catalog.get(stream.name)
        self.entry = entry = entry or CatalogEntry(tap_stream_id=stream.name, stream=stream.name, schema={})
        self.is_selected, self.is_over = entry.is_selected, False
        self.failure: SyncError | None = None
        self._key = replication_key_of(stream, entry)
        self.context = Context(
            stream,
            entry,
            session.config,
            session.state,
            session.log.bind(stream=stream.name),
            client=lambda: session.clients.of(stream),
            now=session.now,
            start_date=session.start_date,
            run=self,
        )
        above = parent or (source if source and (source._key or source.parent) else None)
        self.progress: Progress = Progress(
            session.state,
            stream.name,
            key=self._key,
            schema=entry.schema,
            strategy=None if is_emitted_only else stream.strategy,
            is_sorted=stream.is_sorted,
            lookback=stream.lookback,
            start_date=self.context.start_date,
            value_of=self._value_of(),
            is_selected=self.is_selected,
            parent=above.progress if above else None,
            log=self.context.log,
        )
        self.pipeline: RecordPipeline | None = None
        if self.is_selected:
            self.pipeline = RecordPipeline(session, stream, entry, self.progress, self.context.log)
        self.stats: SyncStats = self.pipeline or SyncStats()
        self._is_in_table = False
        self._put = self.pipeline.put if self.pipeline else self.progress.see
        self.children = [
            StreamSync(session, child, self, active=self.active) for child in stream.children if session.needs(child)
        ]
        self.emitted = [
            StreamSync(session, other, source=self, active=self.active)
            for other in stream.emitted_streams
            if session.needs(other) and not is_emitted_only
        ]
        self._is_plain = self.is_selected and not self.children

    def family(self) -> Iterator[StreamSync]:
        """Yield this sync and all below it, in the order of ``streams.with_descendants``."""
        yield self
        for each in (*self.emitted, *self.children):
            yield from each.family()

    def restart(self) -> None:
        """Prepare to read the source from the original bookmark: the first time, or again after an error."""
        for root in (self, *self.emitted):
            root.progress.restart()
        for each in self.family():
            if each.failure is not None:
                each.progress.fail()
            each.context.restart(each.progress.bookmark)

    def announce(self) -> None:
        """Write the SCHEMA of a selected stream, and notify the observer."""
        if self.pipeline is not None:
            self.session.observer.started(self.stream, self.stats)
            keys = self.entry.key_properties or self.stream.key_properties
            key = self.entry.replication_key or self.stream.replication_key
            bookmarks = [key] if self._key and key else []
            self.session.output.schema(self.entry.stream, self.pipeline.schema, keys, bookmarks)

    # -- the source -----------------------------------------------------------------------------------------------

    def read_source(self, parent: Any = None) -> None:
        """Read all records of the source, of a substream those for one record of the parent."""
        session, stream = self.session, self.stream
        providers: Providers = {
            "client": lambda: session.clients.of(stream),
            "config": lambda: session.config,
            "context": lambda: self.context,
            "parent": lambda: parent,
        }
        self.context.begin(parent, self.progress)
        source = session.call(stream, providers)
        if isinstance(source, (Mapping, str, bytes)):
            kind = type(source).__name__
            raise TapError(f"{stream.title}: returned a {kind}: expected records, yielded or in a list")
        is_inner, monotonic = self.parent is not None, time.monotonic
        due = monotonic() + _FLUSH_SECONDS
        with closing(session.stop.items(source)) as items:
            for item in items:
                self._accept_item(item)
                if is_inner and monotonic() >= due:
                    self._checkpoint()
                    due = monotonic() + _FLUSH_SECONDS

    def fail(self, failure: SyncError) -> None:
        """Mark this sync and all below it as over; the bookmarks stay where they are."""
        self.is_over, self.failure = True, self.failure or failure
        for each in (*self.emitted, *self.children):
            each.fail(failure)

    # -- records --------------------------------------------------------------------------------------------------

    def accept(self, record: Any) -> None:
        """Write a record of the source, and sync the substreams for it."""
        is_due = self._put(record)
        if self._is_plain:
            if is_due:
                self._checkpoint()
            return
        for child in self.children:
            child.sync_for(record)
        if not self.emitted:
            self.progress.done()
        if is_due:
            self._checkpoint()
        if not (self.is_selected or self.emitted) and all(child.is_over for child in self.children):
            raise LimitReached

    def _accept_item(self, item: Any) -> None:
        """Accept an item that the stream's function yielded."""
        if self.emitted and not _is_emitted(item):
            self.progress.done()  # all that the records before this one emit has come
        kind = type(item)
        if kind is dict:
            self.accept(item)
        elif kind is list:
            if self.context.has_emitted and Emitted in map(type, item):
                self.emit(item, self.stream.name)
            else:
                self._accept_page(item)
        elif kind is Emitted:
            self.emit(item, self.stream.name)
        elif isinstance(item, (Iterator, Set)) or kind is tuple:
            raise TapError(f"{self.stream.title}: yielded a {kind.__name__}: expected a record, or a list of them")
        else:
            self.accept(item)

    def _accept_page(self, records: list[Any]) -> None:
        pipeline = self.pipeline if self._is_plain else None
        is_due = pipeline.put_page(records) if pipeline is not None and pipeline.can_write_pages else None
        if is_due is None:
            for record in records:
                self.accept(record)
        elif is_due:
            self._checkpoint()

    def sync_for(self, record: Any) -> None:
        """Sync this substream for a record of its parent."""
        if self.is_over:
            return
        state = self.session.state
        above = state.currently_syncing
        state.mark_syncing(self.stream.name)
        try:
            self.read_source(record)
        except LimitReached:
            self.is_over = True
        except (OutputError, LateDeclarationError):
            raise
        except (Exception, SystemExit) as error:
            failure = self.session.fail(self.stream, error)
            self.progress.fail()
            self.fail(failure)
        state.mark_syncing(above)

    def _checkpoint(self) -> None:
        """Write the state in the middle of the stream, as far as it is correct, and flush the output."""
        self.progress.checkpoint()
        self.session.write_changed_state()

    def _value_of(self) -> Callable[[dict[str, Any]], Any] | None:
        if self.stream.bookmark_of is None:
            return None
        call = inject(self.stream.bookmark_of, ("record", "state"), f"{self.stream.title}: bookmark")
        entry = self.session.state.entry(self.stream.name)
        return lambda record: call({"record": lambda: record, "state": lambda: entry})

    # -- the methods of a context ---------------------------------------------------------------------------------

    @property
    def is_stopping(self) -> bool:
        """The run was asked to end."""
        return self.session.stop.number is not None

    def emit(self, record: Any, stream: str) -> None:
        """Write a record, or a list of them, of this stream or another."""
        with self.session.stop.deferred():
            for each in record if isinstance(record, list) else (record,):
                is_emitted = type(each) is Emitted
                target = self._sync_of(each.stream if is_emitted else stream)
                if target.is_selected or target.children:
                    target.accept(each.record if is_emitted else each)

    def quarantine(self, record: Any, reason: str) -> None:
        """See ``Context.quarantine``."""
        if self.pipeline is not None:
            with self.session.stop.deferred():
                self.pipeline.refuse(record, RecordError(self.stream.name, reason))

    def set_bookmark(self, value: Any) -> None:
        """See ``Context.set_bookmark``."""
        with self.session.stop.deferred():
            self.progress.set(value)

    @property
    def highest(self) -> Any:
        """See ``Context.highest``."""
        return self.progress.highest

    def checkpoint(self, *, asked: bool) -> None:
        """See ``Context.checkpoint``."""
        with self.session.stop.deferred():
            if asked:
                if self.emitted:
                    self.progress.done()
                self.progress.checkpoint(asked=True)
            self.session.write_state()

    def context_of(self, stream: str) -> Context:
        """Return the context of another stream of this run."""
        return self._sync_of(stream).context

    @contextmanager
    def full_table(self) -> Iterator[int]:
        """See ``Context.full_table``."""
        title, state, name = self.stream.title, self.session.state, self.stream.name
        if self.parent is not None:
            raise TapError(f"{title}: full_table() is for streams without a parent")
        if self._is_in_table:
            raise TapError(f"{title}: full_table() within full_table()")
        if self.session.is_calling:
            raise TapError(f"{title}: full_table() needs a function that yields: returned records come after its end")
        version, pipeline = 0, self.pipeline
        if pipeline is None:
            yield version
        else:
            can_resume = self.context.log_position is not None
            self._is_in_table = True
            try:
                with pipeline.new_version(can_resume=can_resume) as version:
                    yield version
                    self.session.stop.check()  # the body may have ended early because of it
            finally:
                self._is_in_table = False
        if (self.entry.replication_method or self.stream.method) != "FULL_TABLE":
            return
        if not self.progress.set(None) and state.get(name, POSITION) is not None:
            # A substream failed: the next run resumes there, with this version.
            state.set(name, "version", version or None)

    def _sync_of(self, name: str) -> StreamSync:
        """Return the sync of a stream that records are emitted for; it starts if it is not active.

        Raises:
            TapError: there is no such stream.
        """
        sync = self.active.get(name)
        if sync is None:
            stream = self.session.streams.get(name)
            if stream is None:
                raise TapError(f"there is no stream {name!r} to emit for; there are: {', '.join(self.session.streams)}")
            sync = StreamSync(self.session, stream, active=self.active, is_emitted_only=True)
            for each in sync.family():
                if self.active.setdefault(each.stream.name, each) is each:
                    each.announce()
        return sync


def _is_emitted(item: Any) -> bool:
    return type(item) is Emitted or (type(item) is list and {*map(type, item)} == {Emitted})
