"""``--test``: does the source answer, and does each stream give a record?"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from balog.tap.bookmarks import State
from balog.tap.errors import RecordError, StreamError
from balog.tap.records import MAX_QUARANTINED, Output, RecordQuarantine
from balog.tap.syncing import Counts, Observer, Sync

if TYPE_CHECKING:
    from balog.tap.catalog import Catalog
    from balog.tap.streams import Stream
    from balog.tap.tap import Tap

__all__ = ["try_streams"]


def try_streams(tap: Tap, config: Any, catalog: Catalog, state: State, start_date: str | None) -> int:
    """Ask each selected stream for its first record; say on stderr what came. Nothing is written, no bookmark moves.

    Returns:
        The exit code: 0, or 1 when a stream failed.
    """
    told = _Teller()
    trial = _Trial(tap, config, catalog, state, _Nowhere(), observer=told, max_records=1, start_date=start_date)
    return trial.run()


class _Trial(Sync):
    def quarantine(self, stream: str, log: Any) -> RecordQuarantine:
        """Give what keeps no record."""
        return _Unkept("", log)


class _Unkept(RecordQuarantine):
    def put(self, error: RecordError, record: Any) -> None:
        """Count a record that a sync would set aside; enough of them are an error there, too."""
        if self.count >= MAX_QUARANTINED:
            raise error
        self.count += 1


class _Nowhere(Output):
    """Makes the messages, so that what cannot be written is found, and lets them go."""

    def flush(self) -> None:
        """Let what was written go."""
        self._buffer.clear()


class _Teller(Observer):
    def ended(self, stream: Stream, counts: Counts, error: StreamError | None) -> None:
        said = f"failed: {error.reason}" if error else "gave a record" if counts.records else "gave no record"
        if counts.quarantined:
            said += f"; {counts.quarantined} that break its schema would be set aside"
        sys.stderr.write(f"{stream.name}: {said}\n")
