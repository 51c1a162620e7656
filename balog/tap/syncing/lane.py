"""One stream in one run: from its source's records to what is written of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from balog.tap.bookmarks import EndOfStream, FullTable, Progress
from balog.tap.bookmarks.order import order_of
from balog.tap.catalog import Entry
from balog.tap.context import POSITION, Context, Emitted, replication_key_of
from balog.tap.errors import RecordError, StreamError, TapError
from balog.tap.records import Transformer, Writer
from balog.tap.streams import Stream, by_names
from balog.tap.syncing.observing import Counts

if TYPE_CHECKING:
    from balog.tap.syncing.sync import Sync

__all__ = ["Enough", "Lane"]


class Enough(Exception):
    """As many records as were wanted have come."""


class Lane:
    """One stream in one run.

    Args:
        run: the run.
        stream: the stream.
        entry: of the catalog; None when the catalog does not name it.
        parent: the lane of the parent.
        giver: the lane of the stream whose source gives this one's records.
        is_guest: it has a source of its own, and is here for records that another stream's function writes. These say
            nothing of how far that source is, so that its bookmark does not move.

    Attributes:
        accept: takes a record of the source: it is made to fit, held against the bookmark, written and counted, and its
            children are asked. It is put together once of what this stream needs, for it runs for each record.
        accept_page: takes a list of them.
        counts: see there.
        context: what the stream's function is given.
        progress: how far it is.
        is_written: it is selected; else it is walked for the sake of its children.
        is_in_table: what comes is a new version of the table.
        is_over: nothing more is asked of it in this run: it failed, or as much as was wanted has come.
        failure: its own, or that of a stream above it.
        write: writes a record, and tells whether it did; ``write.page`` writes several, and tells how many.
    """

    def __init__(
        self,
        run: Sync,
        stream: Stream,
        entry: Entry | None,
        parent: Lane | None = None,
        *,
        giver: Lane | None = None,
        is_guest: bool = False,
    ) -> None:
        self.run, self.stream, self.parent = run, stream, parent
        self.entry = entry = entry or Entry(tap_stream_id=stream.name, stream=stream.name, schema={})
        self.is_written, self.is_over, self.is_in_table = entry.is_selected, False, False
        self.failure: StreamError | None = None
        self.method = entry.replication_method or stream.method
        self.key = replication_key_of(stream, entry)
        self.context = Context(
            stream,
            entry,
            run.config,
            run.state,
            run.log.bind(stream=stream.name),
            client=lambda: run.clients.of(stream),
            now=run.now,
            start_date=run.start_date,
            writing=self,
        )
        above = parent or (giver if giver and (giver.key or giver.parent) else None)
        self.progress: Progress = Progress(
            run.state,
            stream.name,
            key=self.key,
            schema=entry.schema,
            strategy=EndOfStream() if is_guest else stream.strategy,
            is_sorted=stream.is_sorted,
            lookback=stream.lookback,
            start_date=self.context.start_date,
            value_of=self._value_of(),
            is_selected=self.is_written,
            parent=above.progress if above else None,
            log=self.context.log,
        )
        if self.is_written:
            self.transform = Transformer(
                entry,
                stream.policy,
                stream.after,
                epoch=stream.epoch,
                quarantine=run.quarantine(entry.tap_stream_id, self.context.log),
                log=self.context.log,
            )
            self.write = self._writer()
        self.counts = Counts(self.transform if self.is_written else None)
        below = [child for child in stream.children if run.wants(child)]
        self.children = [Lane(run, child, run.catalog.get(child.name), self) for child in below]
        given = [other for other in stream.given if run.wants(other)]
        self.given = [Lane(run, other, run.catalog.get(other.name), giver=self) for other in given]
        self.accept, self.accept_page = self._accept()

    def all(self) -> Iterator[Lane]:
        """Give this lane and all below it, in the order of ``streams.below``."""
        yield self
        for lane in (*self.given, *self.children):
            yield from lane.all()

    def begin(self) -> None:
        """Be ready for a source that is asked from the original bookmark: the first time, or again after an error."""
        for top in (self, *self.given):
            top.progress.restart()
        for lane in self.all():
            if lane.failure is not None:
                lane.progress.fail()
            lane.context.bookmark = lane.progress.bookmark if lane.key else None
            if lane.key is None and lane.progress.bookmark is None:
                lane.context.is_first_run = True
            lane.accept, lane.accept_page = lane._accept()

    # -- records --------------------------------------------------------------------------------------------------

    def _accept(self) -> tuple[Callable[[Any], None], Callable[[list[Any]], None]]:
        run, progress, counts, ask = self.run, self.progress, self.counts, self.run.ask_children
        has_children, has_given, limit = bool(self.children), bool(self.given), run.max_records
        put = self._put() if self.is_written else progress.see

        def accept(record: Any) -> None:
            if put(record):
                run.checkpoint(self)

        def accept_with_family(record: Any) -> None:
            is_due = put(record)
            if has_children:
                ask(self, record)
            if not has_given:
                progress.done()
            if is_due:
                run.checkpoint(self)
            if limit and counts.records >= limit:
                raise Enough
            if not (self.is_written or has_given) and all(child.is_over for child in self.children):
                raise Enough

        if self.is_written and not (has_children or limit):
            return accept, partial(_each, accept) if self.stream.created_key else self._accept_page(accept)
        return accept_with_family, partial(_each, accept_with_family)

    def _put(self) -> Callable[[Any], bool | None]:
        see, transform, counts, count_new = self.progress.see, self.transform, self.counts, self._count_new()

        def put(record: Any) -> bool | None:
            made = transform(record)
            if made is None:
                return None
            try:
                is_due = see(made)
            except RecordError as error:
                transform.refuse(record, error)
                return None
            if self.write(made):
                counts.records += 1
                if count_new is not None:
                    count_new(made)
            return is_due

        return put

    def _accept_page(self, accept: Callable[[Any], None]) -> Callable[[list[Any]], None]:
        run, counts, progress, see, transform = self.run, self.counts, self.progress, self.progress.see, self.transform

        def accept_page(records: list[Any]) -> None:
            try:
                made = transform.page(records)
            except RecordError:  # one of them ends the stream: those before it are written
                _each(accept, records)
                return
            is_due, start = False, 0
            try:
                for index, record in enumerate(made):
                    try:
                        if see(record):
                            is_due = True
                    except RecordError as error:
                        counts.records += self.write.page(made[start:index])
                        start = index + 1
                        transform.refuse(record, error)
                counts.records += self.write.page(made[start:] if start else made)
            except BaseException:
                progress.restart()  # what it has seen may not have been written
                raise
            if is_due:
                run.checkpoint(self)

        return accept_page

    def _writer(self, version: int | None = None) -> Writer:
        return self.run.output.records(
            self.entry.stream, version, has_time=self.stream.has_time, refuse=self.transform.refuse
        )

    def _count_new(self) -> Callable[[dict[str, Any]], None] | None:
        counts, created, since = self.counts, self.stream.created_key, self.progress.start
        if created is None or since is None:
            return None
        order = order_of(self.entry.schema, created)
        counts.new, counts.updated = counts.new or 0, counts.updated or 0

        def count(record: dict[str, Any]) -> None:
            try:
                is_new = order.is_before(since, record.get(created))
            except ValueError:  # null, or not a time: nothing is known of it
                return
            if is_new:
                counts.new = (counts.new or 0) + 1
            else:
                counts.updated = (counts.updated or 0) + 1

        return count

    def _value_of(self) -> Callable[[dict[str, Any]], Any] | None:
        own = self.stream.bookmark_of
        if own is None:
            return None
        call = by_names(own, ("record", "state"), f"{self.stream.title}: bookmark")
        said = self.run.state.entry(self.stream.name)
        return lambda record: call({"record": lambda: record, "state": lambda: said})

    # -- what a context hands on -----------------------------------------------------------------------------------

    @property
    def is_stopping(self) -> bool:
        """The run was asked to end."""
        return self.run.stop.number is not None

    def emit(self, record: Any, stream: str) -> None:
        """Write a record of this stream, or of another."""
        with self.run.stop.held():
            for each in record if isinstance(record, list) else (record,):
                is_emitted = type(each) is Emitted
                lane = self.run.lane(each.stream if is_emitted else stream)
                if lane.is_written or lane.children:
                    lane.accept(each.record if is_emitted else each)

    def set_bookmark(self, value: Any) -> None:
        """See ``Context.set_bookmark``."""
        with self.run.stop.held():
            self.progress.set(value)
            if self.key is None:
                self.context.log_position = value

    def checkpoint(self, *, asked: bool) -> None:
        """See ``Context.checkpoint``."""
        with self.run.stop.held():
            if asked:
                if self.given:
                    self.progress.done()
                self.progress.checkpoint(asked=True)
            self.run.write_state()

    def context_of(self, stream: str) -> Context:
        """Give the context of another stream of this run."""
        return self.run.lane(stream).context

    @contextmanager
    def full_table(self) -> Iterator[int]:
        """See ``Context.full_table``."""
        title, state, name = self.stream.title, self.run.state, self.stream.name
        if self.parent is not None:
            raise TapError(f"{title}: full_table() is for streams without a parent")
        if self.is_in_table:
            raise TapError(f"{title}: full_table() within full_table()")
        if self.run.is_calling:
            raise TapError(f"{title}: full_table() is for a function that yields: what it returns comes after its end")
        if self.is_written:
            can_go_on = self.context.log_position is not None
            self.is_in_table = True
            with FullTable(state, name, self._activating(), can_go_on=can_go_on) as version:
                self.write = self._writer(version)
                try:
                    yield version
                    self.run.stop.check()  # the body may have ended early for that
                finally:
                    self.write = self._writer()
                    self.is_in_table = False
        else:
            yield (version := 0)
        if self.method != "FULL_TABLE":
            return
        if not self.progress.set(None) and state.get(name, POSITION) is not None:
            state.set(
                name, "version", version or None
            )  # a child failed: the next run goes on from there, with this version
        self.context.log_position = None

    def _activating(self) -> Callable[[int], None]:
        before = self.counts.quarantined

        def activate(version: int) -> None:
            if self.counts.quarantined == before:
                self.run.output.activate_version(self.entry.stream, version)
            else:
                self.context.log.warning(
                    f"{self.entry.stream}: those of before are kept in the table too: this version of it lacks records "
                    "that were set aside",
                    version=version,
                )

        return activate


def _each(take: Callable[[Any], None], records: list[Any]) -> None:
    for record in records:
        take(record)
