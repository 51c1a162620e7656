"""The observer of a run, and the stats that it sees: for metrics, reports and tests."""

from __future__ import annotations

from balog.tap.errors import SyncError
from balog.tap.records import Transformer
from balog.tap.streams import Stream


class SyncStats:
    """The numbers of one stream in one run. They change while it runs and can be read at any time.

    Attributes:
        records: the number of records written; one that a retry returned again counts twice.
        new: of those, the number created after the bookmark, by the stream's ``created_key``. For a stream without a
            bookmark it is all, known at the end. None if it is unknown.
        updated: the number of the others, likewise.
    """

    __slots__ = ("_transform", "new", "records", "updated")

    def __init__(self, transform: Transformer | None = None) -> None:
        self._transform = transform
        self.records = 0
        self.new: int | None = None
        self.updated: int | None = None

    @property
    def quarantined(self) -> int:
        """The number of records in the quarantine."""
        return self._transform.quarantined if self._transform else 0


class Observer:
    """Follows a run. All methods do nothing; override what you need. An exception from here ends the run."""

    def started(self, stream: Stream, stats: SyncStats) -> None:
        """Called when a stream starts, before its SCHEMA. Substreams start with it, in the order of schemas."""

    def retried(self, stream: Stream, error: BaseException, attempt: int) -> None:
        """Called when a stream is restarted, for the ``attempt``-th time."""

    def ended(self, stream: Stream, stats: SyncStats, error: SyncError | None) -> None:
        """Called when a stream is complete, or it or a stream above it failed; not if it was interrupted."""
