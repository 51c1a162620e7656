"""What the streams of one run share: config, catalog, state, output, clients, the observer, and failures."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timezone
from typing import Any

import balog
from balog.log.values.json_values import safe_str
from balog.tap.bookmarks import State
from balog.tap.catalog import Catalog
from balog.tap.definition import TapDefinition
from balog.tap.errors import SyncError, TapError
from balog.tap.records import MAX_QUARANTINED, Output, RecordQuarantine, Transformer, default_quarantine
from balog.tap.streams import Providers, Stream, link, with_descendants
from balog.tap.syncing.interrupts import Stop


class SyncStats:
    """The numbers of one stream in one run. They change while it runs and can be read at any time.

    Attributes:
        records: the number of records written.
        new: of those, the number created after the bookmark, by the stream's ``created_key``. For a stream without a
            bookmark it is all, known at the end. None if it is unknown.
        updated: the number of the others, likewise.
    """

    __slots__ = ("_transformer", "new", "records", "updated")

    def __init__(self, transform: Transformer | None = None) -> None:
        self._transformer = transform
        self.records = 0
        self.new: int | None = None
        self.updated: int | None = None

    @property
    def removed(self) -> list[str]:
        """The first paths of the source's records that the schema does not have."""
        return self._transformer.removed if self._transformer else []

    def count_all_as_new(self) -> None:
        """Count all records as new, because the stream had no bookmark."""
        self.new, self.updated = self.records, 0

    @property
    def quarantined(self) -> int:
        """The number of records in the quarantine."""
        return self._transformer.quarantined if self._transformer else 0


class Observer:
    """Follows a run. All methods do nothing; override what you need. An exception from here ends the run."""

    def started(self, stream: Stream, stats: SyncStats) -> None:
        """Called when a stream starts, before its SCHEMA. Substreams start with it, in the order of schemas."""

    def ended(self, stream: Stream, stats: SyncStats, error: SyncError | None) -> None:
        """Called when a stream is complete, or it or a stream above it failed; not if it was interrupted."""


def report_failures(log: Any, failures: Iterable[SyncError]) -> None:
    """Write ``CRITICAL contacts: message`` to stderr for each failure, with secrets redacted, and log it."""
    failures = list(failures)
    if not failures:
        return
    from balog.common.redaction import Redactor
    from balog.log.configuration import state

    redactor = state.current().redactor or Redactor()
    for failure in failures:
        log.critical("%s", failure, exc_info=failure.__cause__)
        sys.stderr.write(redactor.redact_text(f"CRITICAL {failure}\n"))
    sys.stderr.flush()


def reason_of(stream: Stream, error: BaseException) -> str:
    """Return an error as one line, without the stream's name at its start.

    A message of a single word, such as that of a ``KeyError``, gets the error's type before it.
    """
    text = " ".join(safe_str(error).split()).removeprefix(f"{stream.name}: ")
    if isinstance(error, SystemExit):
        return f"its source ended the process ({text or 0})"
    return text if " " in text else f"{type(error).__name__}{text and ': '}{text}"


class ClientCache:
    """Makes the tap's client and the streams' own clients, and keeps them.

    Args:
        config: the argument of the functions that make clients.
        make: makes the tap's client; None for a tap without one.
        client: the tap's client, if it exists already.
    """

    def __init__(self, config: Any, make: Callable[[Any], Any] | None, client: Any = None) -> None:
        self._config, self._make = config, make
        self._results: dict[Any, tuple[Any, BaseException | None]] = {}
        if make is not None and client is not None:
            self._results[make] = client, None

    def of(self, stream: Stream) -> Any:
        """Return the stream's own client, or the tap's. One that failed is not made again: its error is raised."""
        make = stream.client or self._make
        if make is None:
            return None
        if make not in self._results:
            try:
                self._results[make] = make(self._config), None
            except (Exception, SystemExit) as error:  # a wrong password, tried for each stream, locks an account
                self._results[make] = None, error
        client, failure = self._results[make]
        if failure is not None:
            raise failure
        return client


class Session:
    """The config, catalog, state, output and clients of one run, and its failures.

    Args:
        tap: a tap, or streams alone.
        config: the config as the tap's spec returned it.
        catalog: the selection.
        state: updated as the run goes on.
        output: gets the messages.
        observer: follows the run.
        stop: whether to end.
        client: the tap's client, if it exists already.
        start_date: where streams without a bookmark start; None means the config's.
        quarantine_file: the file for quarantined records; None means the tap's own.

    Attributes:
        streams: all streams by name, linked.
        log: the tap's logger.
        failures: the errors of failed streams, in their order.
        now: the start of the run, in UTC.
        clients: those of the tap and of streams.
        is_calling: a stream's function is running and is not a generator: its records come when it has returned.
    """

    def __init__(
        self,
        tap: TapDefinition | Iterable[Stream],
        config: Any,
        catalog: Catalog,
        state: State,
        output: Output,
        *,
        observer: Observer | None = None,
        stop: Stop | None = None,
        client: Any = None,
        start_date: str | None = None,
        quarantine_file: str | None = None,
    ) -> None:
        definition = tap if isinstance(tap, TapDefinition) else None
        self.name = definition.name if definition else "tap"
        self.streams: Mapping[str, Stream] = tap.link() if isinstance(tap, TapDefinition) else _linked(tap)
        self.config, self.catalog, self.state, self.output = config, catalog, state, output
        self.observer, self.stop = observer or Observer(), stop or Stop()
        self.start_date = start_date
        self.log: Any = balog.get_logger(self.name)
        self.now = datetime.now(timezone.utc)
        self.failures: list[SyncError] = []
        self.is_calling = False
        self.clients = ClientCache(config, definition.make_client if definition else None, client)
        self._quarantine_file = quarantine_file or (definition.quarantine if definition else None)
        self._max_quarantined = definition.max_quarantined if definition else MAX_QUARANTINED
        self._quarantines: dict[str, RecordQuarantine] = {}
        self._written: dict[str, Any] | None = None

    def needs(self, stream: Stream) -> bool:
        """Return whether a stream, or one below it, is selected."""
        return any((entry := self.catalog.get(each.name)) and entry.is_selected for each in with_descendants(stream))

    def quarantine(self, stream: str, log: Any) -> RecordQuarantine:
        """Return the quarantine of a stream: the file that was configured, or one of its own."""
        if stream not in self._quarantines:
            path = self._quarantine_file or (lambda: default_quarantine(self.name, stream))
            self._quarantines[stream] = RecordQuarantine(path, log, self._max_quarantined)
        return self._quarantines[stream]

    def call(self, stream: Stream, providers: Providers) -> Any:
        """Call a stream's function, and return what it returns; a signal interrupts it."""
        try:  # not a context manager: a signal during its `__enter__` would skip its `__exit__`
            self.is_calling = self.stop.in_source = True
            self.stop.check()
            return stream.call(providers)
        finally:
            self.stop.in_source = self.is_calling = False

    def write_state(self) -> None:
        """Write a STATE, and flush what was written before."""
        self._written = self.state.as_json()
        self.output.state(self._written)

    def write_changed_state(self) -> None:
        """Write a STATE if the state has changed since the last one; flush the output in any case."""
        if self.state.as_json() == self._written:
            self.output.flush()
        else:
            self.write_state()

    def fail(self, stream: Stream, error: BaseException) -> SyncError:
        """Record that a stream failed."""
        failure = SyncError(stream.name, reason_of(stream, error), error)
        self.failures.append(failure)
        return failure

    def close(self) -> None:
        """Close the quarantines."""
        for quarantine in self._quarantines.values():
            quarantine.close()


def _linked(streams: Iterable[Stream]) -> dict[str, Stream]:
    family: dict[str, Stream] = {}
    for stream in streams:
        for each in (stream, *stream.family.values()):
            if family.setdefault(each.name, each) is not each:
                raise TapError(f"{each.title}: there is a stream of this name already ({family[each.name].place})")
    link(family)
    return family
