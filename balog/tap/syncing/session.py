"""What the streams of one run share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from typing import Any

import balog
from balog.tap.bookmarks import State
from balog.tap.catalog import Catalog
from balog.tap.definition import TapDefinition
from balog.tap.errors import SyncError, TapError
from balog.tap.records import MAX_QUARANTINED, Output, RecordQuarantine, default_quarantine
from balog.tap.streams import Stream, link, with_descendants
from balog.tap.syncing.clients import ClientCache
from balog.tap.syncing.failures import reason_of
from balog.tap.syncing.interrupts import Stop
from balog.tap.syncing.observer import Observer


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
        max_records: the number of records after which a stream ends, without moving bookmarks; 0 means all.
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
        max_records: int = 0,
        start_date: str | None = None,
        quarantine_file: str | None = None,
    ) -> None:
        definition = tap if isinstance(tap, TapDefinition) else None
        self.name = definition.name if definition else "tap"
        self.streams: Mapping[str, Stream] = tap.link() if isinstance(tap, TapDefinition) else _linked(tap)
        self.config, self.catalog, self.state, self.output = config, catalog, state, output
        self.observer, self.stop, self.max_records = observer or Observer(), stop or Stop(), max_records
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
        self.stop.in_source = False
        failure = SyncError(stream.name, reason_of(stream, error))
        failure.__cause__ = error
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
