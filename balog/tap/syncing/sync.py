"""The loop over streams and records."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from datetime import datetime, timezone
from typing import Any

import balog
from balog.tap.bookmarks import State
from balog.tap.catalog import Catalog
from balog.tap.context import Emitted
from balog.tap.errors import OutputError, StreamError, TapError
from balog.tap.records import MAX_QUARANTINED, Output, RecordQuarantine, default_quarantine
from balog.tap.streams import Stream, below, by_names, in_order, link
from balog.tap.syncing.clients import Clients
from balog.tap.syncing.failing import reason_of, say_failures
from balog.tap.syncing.interrupting import Interrupted, Stop
from balog.tap.syncing.lane import Enough, Lane
from balog.tap.syncing.observing import Counts, Observer
from balog.tap.syncing.repeating import Repeats
from balog.tap.tap import Tap

__all__ = ["Sync"]


class Sync:
    """One run.

    Streams run one after another in the order in which they were declared, the one at which the run before was
    interrupted first. Each that can run does; what went wrong is kept in ``failures``.

    A substream is asked for each record of its parent, at once: its records come after the parent's, and the parent's
    bookmark moves on only when they are written. When they take longer than the substream's ``buffer_seconds``, what
    was written is handed on, and the state up to the parent before is written if the parent's strategy allows states in
    the middle. So memory holds one record (or page) of each level, and no state says more than what was written. A
    substream that fails is not asked again in this run, its parent goes on, and the parent's bookmark stays where it
    was. A substream's own bookmark is the largest value over all parents and is written when all are done; in a run
    each parent is asked with the bookmark of the run's beginning.

    Args:
        tap: what is declared; or streams alone.
        config: as its spec gave it.
        catalog: what is selected.
        state: from where; written to as it goes on.
        output: where messages go.
        observer: who watches.
        stop: whether to end.
        client: the tap's, when it was made already.
        max_records: of each stream, then it is left; bookmarks stay where they are. 0 is all.
        start_date: where streams without a bookmark begin; the config's own when None.
        quarantine_file: where records go that are set aside; the tap's own when None.

    Attributes:
        failures: of the streams that failed, in the order in which they did.
        now: one instant for the run, in UTC.
        clients: of the tap and of streams.
        is_calling: a stream's function runs that is no generator: its records come when it is over.
    """

    def __init__(
        self,
        tap: Tap | Iterable[Stream],
        config: Any,
        catalog: Catalog,
        state: State,
        output: Output,
        *,
        observer: Observer | None = None,
        stop: Stop | None = None,
        client: Any = None,
        max_records: int = 0,
        start_date: str | None = None,
        quarantine_file: str | None = None,
    ) -> None:
        self.tap = tap if isinstance(tap, Tap) else None
        self.streams: Mapping[str, Stream] = tap.link() if isinstance(tap, Tap) else _linked(tap)
        self.config, self.catalog, self.state, self.output = config, catalog, state, output
        self.observer, self.stop, self.max_records = observer or Observer(), stop or Stop(), max_records
        self.name = tap.name if isinstance(tap, Tap) else "tap"
        self.start_date = start_date
        self._quarantine_file = quarantine_file or (self.tap.quarantine if self.tap else None)
        self.log: Any = balog.get_logger(self.name)
        self.now = datetime.now(timezone.utc)
        self.failures: list[StreamError] = []
        self.is_calling = False
        self._lanes: dict[str, Lane] = {}
        self._written: dict[str, Any] | None = None
        self._quarantines: dict[str, RecordQuarantine] = {}
        self.clients = Clients(config, self.tap.make_client if self.tap else None, client)

    def run(self) -> int:
        """Sync all that is selected, and say on stderr which streams failed.

        Returns:
            The exit code: 0, 1 when a stream failed, 128 and the signal's number when the run was interrupted.

        Raises:
            OutputError: what was written cannot be handed on.
        """
        selected = {entry.tap_stream_id for entry in self.catalog if entry.is_selected}
        try:
            return self._run(selected)
        finally:
            for quarantine in self._quarantines.values():
                quarantine.close()

    def _run(self, selected: set[str]) -> int:
        try:
            for stream in in_order(self.streams.values(), selected, self.state.currently_syncing):
                self._sync(stream)
        except (Interrupted, KeyboardInterrupt) as interrupt:
            self.write_state()
            say_failures(self.log, self.failures)
            return 128 + (interrupt.number if isinstance(interrupt, Interrupted) else 2)
        self.state.currently_syncing = None
        self.write_state()
        say_failures(self.log, self.failures)
        return 1 if self.failures else 0

    # -- streams ----------------------------------------------------------------------------------------------------

    def _sync(self, stream: Stream) -> None:
        self._lanes.clear()
        self.state.currently_syncing = stream.name
        self.write_state()
        try:
            lane = Lane(self, stream, self.catalog.get(stream.name))
            lane.begin()
        except Exception as error:  # what is declared, or the state's bookmark, does not fit: other streams may
            counts = Counts()
            self.observer.started(stream, counts)
            self.observer.ended(stream, counts, self._fail(stream, error))
            return
        lanes = list(lane.all())
        self._lanes = {each.stream.name: each for each in lanes}
        for each in lanes:
            if each.is_written:
                self._begin(each)
        tops = (lane, *lane.given)
        try:
            self._ask(lane)
            if not self.max_records:
                for top in tops:
                    top.progress.finish()
        except (Interrupted, KeyboardInterrupt):
            for top in tops:
                top.progress.checkpoint()
            raise
        except OutputError:
            raise
        except Enough:
            pass
        except (Exception, SystemExit) as error:
            failure = self._fail(stream, error)
            for top in tops:
                top.progress.fail()
            for each in lanes:
                each.failure = each.failure or failure
        finally:
            for each in lanes:
                if each.context.is_first_run:
                    each.counts.new, each.counts.updated = each.counts.records, 0
        self.write_state()
        for each in self._lanes.values():
            if each.is_written:
                self.observer.ended(each.stream, each.counts, each.failure)

    def _begin(self, lane: Lane) -> None:
        entry = lane.entry
        self.observer.started(lane.stream, lane.counts)
        keys = entry.key_properties or lane.stream.key_properties
        self.output.schema(entry.stream, lane.transform.schema, keys, [lane.key] if lane.key else [])

    def _ask(self, lane: Lane, parent: Any = None) -> None:
        """Take all that the source has, from the beginning again after an error for which the stream wants that."""
        stream, context = lane.stream, lane.context
        has: dict[str, Callable[[], Any]] = {
            "client": lambda: self.clients.of(stream),
            "config": lambda: self.config,
            "context": lambda: context,
            "parent": lambda: parent,
        }
        context.parent = parent
        attempt = 0
        while True:
            lane.counts.asked += 1
            try:
                self.stop.in_source = True
                self.stop.check()
                if lane.key is None:
                    context.log_position = lane.progress.bookmark
                self.is_calling = True
                items = stream.ask(has)
                self.is_calling = False
                self._take(lane, items)
                return
            except OutputError:
                raise
            except stream.retry_on as error:
                if attempt >= stream.retries:
                    raise
                attempt += 1
                self._before_retry(lane, error, attempt)
                if lane.parent is None:
                    lane.begin()
            finally:
                self.stop.in_source = self.is_calling = False

    def _before_retry(self, lane: Lane, error: Exception, attempt: int) -> None:
        stream = lane.stream
        lane.counts.retries += 1
        lane.context.log.warning(f"Stream {stream.name} is begun again: {reason_of(stream, error)}")
        self.observer.retried(stream, error, attempt)
        if stream.before_retry is not None:
            has: dict[str, Callable[[], Any]] = {"context": lambda: lane.context, "error": lambda: error}
            self.stop.in_source = True  # it may wait
            self.stop.check()
            by_names(stream.before_retry, has, f"{stream.title}: before_retry")(has)

    def _take(self, lane: Lane, items: Any) -> None:
        stream, stop, is_below = lane.stream, self.stop, lane.parent is not None
        accept, accept_page = lane.accept, lane.accept_page
        if isinstance(items, (Mapping, str, bytes)):
            raise TapError(f"{stream.title}: gave a {type(items).__name__}: want records, yielded or in a list")
        monotonic, pause = time.monotonic, stream.buffer_seconds
        due = monotonic() + pause
        repeats = Repeats(lane.context.log.warning) if lane.entry.key_properties else None
        try:
            for number, item in enumerate(items, 1):
                stop.in_source = False
                kind = type(item)
                if lane.given and kind is not Emitted and not (kind is list and {*map(type, item)} == {Emitted}):
                    lane.progress.done()  # what the records before this one gave has come
                if kind is dict:
                    accept(item)
                elif kind is list:
                    if lane.context.has_emitted and Emitted in map(type, item):
                        lane.emit(item, stream.name)
                    else:
                        accept_page(item)
                elif kind is Emitted:
                    lane.emit(item, stream.name)
                elif isinstance(item, (Iterator, Set)) or kind is tuple:
                    raise TapError(f"{stream.title}: yielded a {kind.__name__}: want a record, or a list of them")
                else:
                    accept(item)
                if is_below and monotonic() >= due:
                    self.checkpoint(lane)
                    due = monotonic() + pause
                if repeats is not None:
                    try:
                        if item == repeats.anchor or number == repeats.power or repeats.is_following:
                            repeats.look(item, number)
                    except (TypeError, ValueError):  # what cannot be compared, as an array of numbers
                        repeats = None
                stop.in_source = True
                if stop.number is not None:
                    raise Interrupted(stop.number)
            stop.in_source = False
            stop.check()  # a source that hears of it may end early
        finally:
            stop.in_source = False
            close = getattr(items, "close", None)
            if close is not None and hasattr(items, "send"):  # a generator left in the middle: its own cleaning up
                close()

    def ask_children(self, lane: Lane, record: Any) -> None:
        """Take what belongs to one record of a parent."""
        for child in lane.children:
            if child.is_over:
                continue
            try:
                self._ask(child, record)
            except Enough:
                child.is_over = True
            except OutputError:
                raise
            except (Exception, SystemExit) as error:
                failure = self._fail(child.stream, error)
                child.progress.fail()
                for each in child.all():
                    each.is_over, each.failure = True, failure

    def quarantine(self, stream: str, log: Any) -> RecordQuarantine:
        """Give where records of a stream go that are set aside: the file that was named, or one of the stream's own."""
        if stream not in self._quarantines:
            path = self._quarantine_file or (lambda: default_quarantine(self.name, stream))
            most = self.tap.max_quarantined if self.tap else MAX_QUARANTINED
            self._quarantines[stream] = RecordQuarantine(path, log, most)
        return self._quarantines[stream]

    # -- what lanes ask -----------------------------------------------------------------------------------------------

    def lane(self, name: str) -> Lane:
        """Give the lane of a stream that records are emitted for.

        Raises:
            TapError: there is no such stream.
        """
        found = self._lanes.get(name)
        if found is None:
            stream = self.streams.get(name)
            if stream is None:
                raise TapError(f"there is no stream {name!r} to emit for; there are: {', '.join(self.streams)}")
            found = self._lanes[name] = Lane(self, stream, self.catalog.get(name), is_guest=True)
            if found.is_written:
                self._begin(found)
        return found

    def wants(self, stream: Stream) -> bool:
        """Tell whether a stream, or one below it, is selected."""
        return any((entry := self.catalog.get(each.name)) and entry.is_selected for each in below(stream))

    def checkpoint(self, lane: Lane) -> None:
        """Write the state in the middle of a stream, as far as it is right there; hand on what was written at least."""
        lane.progress.checkpoint()
        if self.state.as_json() == self._written:
            self.output.flush()
        else:
            self.write_state()

    def write_state(self) -> None:
        """Write the state, and hand on what was written before."""
        self._written = self.state.as_json()
        self.output.state(self._written)

    # -- failures -----------------------------------------------------------------------------------------------------

    def _fail(self, stream: Stream, error: BaseException) -> StreamError:
        self.stop.in_source = False
        failure = StreamError(stream.name, reason_of(stream, error))
        failure.__cause__ = error
        self.failures.append(failure)
        return failure


def _linked(streams: Iterable[Stream]) -> dict[str, Stream]:
    family: dict[str, Stream] = {}
    for stream in streams:
        for each in (stream, *stream.family.values()):
            if family.setdefault(each.name, each) is not each:
                raise TapError(f"{each.title}: there is a stream of this name already ({family[each.name].place})")
    link(family)
    return family
