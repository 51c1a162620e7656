"""What a run tells those who watch it: metrics, the report, a test."""

from __future__ import annotations

from balog.tap.errors import StreamError
from balog.tap.records import Transformer
from balog.tap.streams import Stream

__all__ = ["Counts", "Observer"]


class Counts:
    """Of one stream in one run; the loop adds to it, observers read it whenever they like.

    Attributes:
        records: that were written, a record twice when a retry gave it twice.
        new: of those, made after the bookmark, by the stream's ``created_key``; of a stream that had no bookmark all,
            known at its end. None where nothing tells that.
        updated: the others; None likewise.
        asked: how often the source was asked: once, or for each record of the parent; and once more for each retry.
        retries: how often it was begun again.
    """

    __slots__ = ("_transform", "asked", "new", "records", "retries", "updated")

    def __init__(self, transform: Transformer | None = None) -> None:
        self._transform = transform
        self.records = self.asked = self.retries = 0
        self.new: int | None = None
        self.updated: int | None = None

    @property
    def left_out(self) -> int:
        """Records that the stream's ``after`` did not want."""
        return self._transform.left_out if self._transform else 0

    @property
    def quarantined(self) -> int:
        """Records that the policy set aside."""
        return self._transform.quarantined if self._transform else 0


class Observer:
    """Does nothing; what is of interest is overridden. An exception from here ends the run."""

    def started(self, stream: Stream, counts: Counts) -> None:
        """A stream begins; its SCHEMA comes next. Streams below another begin with it, in the order of schemas."""

    def retried(self, stream: Stream, error: BaseException, attempt: int) -> None:
        """A stream is begun again, for the ``attempt``-th time."""

    def ended(self, stream: Stream, counts: Counts, error: StreamError | None) -> None:
        """A stream is done, or failed, itself or one above it; not called for those that an interrupt cut short."""
