"""``--test``: whether the source answers, and each stream returns a record."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from balog.tap.bookmarks import State
from balog.tap.errors import RecordError, SyncError
from balog.tap.records import MAX_QUARANTINED, Output, RecordQuarantine
from balog.tap.syncing import Observer, Sync, SyncStats

if TYPE_CHECKING:
    from balog.tap.catalog import Catalog
    from balog.tap.definition import TapDefinition
    from balog.tap.streams import Stream


def try_streams(tap: TapDefinition, config: Any, catalog: Catalog, state: State, start_date: str | None) -> int:
    """Read the first record of each selected stream, and report on stderr. Nothing is written, no bookmark moves.

    Returns:
        The exit code: 0, or 1 if a stream failed.
    """
    output, printer = _DiscardedOutput(), _ResultPrinter()
    return _Trial(tap, config, catalog, state, output, observer=printer, max_records=1, start_date=start_date).run()


class _Trial(Sync):
    def quarantine(self, stream: str, log: Any) -> RecordQuarantine:
        """Return a quarantine that stores no record."""
        return _CountedQuarantine("", log)


class _CountedQuarantine(RecordQuarantine):
    def put(self, error: RecordError, record: Any) -> None:
        """Count a record that a sync would quarantine. As there, too many of them are an error."""
        if self.count >= MAX_QUARANTINED:
            raise error
        self.count += 1


class _DiscardedOutput(Output):
    """Encodes the messages, to find those that cannot be written, and discards them."""

    def flush(self) -> None:
        """Discard the messages."""
        self._buffer.clear()


class _ResultPrinter(Observer):
    def ended(self, stream: Stream, stats: SyncStats, error: SyncError | None) -> None:
        result = f"failed: {error.reason}" if error else "returned a record" if stats.records else "returned no record"
        if stats.quarantined:
            result += f"; {stats.quarantined} that break its schema would be quarantined"
        sys.stderr.write(f"{stream.name}: {result}\n")
