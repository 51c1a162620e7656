"""Assertions about the messages of a tap, made while it writes them: order, bookmarks, removed paths."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

import msgspec

from balog.singer.bookmarks import bookmark_of, is_after, seconds_between

SLOW_SECONDS = 60.0
"""Runs that are shorter have no bookmark that advances too slowly: their data may end there."""

_decode = msgspec.json.Decoder().decode


@dataclass
class _Progress:
    """One stream: its replication key, the bookmark at the start, that of the last STATE, and the last value."""

    key: str | None
    start: Any
    bookmark: Any
    highest: Any = None
    ordered: Any = None

    def see_order(self, name: str, value: Any) -> Iterator[tuple[str, str]]:
        """Yield the assertion that the next value of ``name`` breaks, with the reason."""
        if is_after(self.ordered, value):
            yield "order", f"{name}: {value!r} comes after {self.ordered!r}"
        self.ordered = self.ordered if value is None else value

    def see_value(self, value: Any) -> Iterator[tuple[str, str]]:
        """Yield the assertion that the next replication value breaks."""
        if self.bookmark != self.start and is_after(self.bookmark, value):
            yield "late", f"a record of {value!r} comes after a STATE with the bookmark {self.bookmark!r}"
        if value is not None and (self.highest is None or is_after(value, self.highest)):
            self.highest = value

    def see_bookmark(self, bookmark: Any) -> Iterator[tuple[str, str]]:
        """Yield the assertion that the bookmark of the next STATE breaks."""
        if is_after(self.bookmark, bookmark) or (bookmark is None and self.bookmark is not None):
            yield "back", f"the bookmark goes back from {self.bookmark!r} to {bookmark!r}"
        self.bookmark = bookmark


class TapAssertions:
    """Checks the messages of runs. Call ``begin`` before a run, ``see`` with its lines, and ``finish`` at its end.

    - A record comes after the SCHEMA of its stream.
    - A record is not older than the bookmark of a STATE before it: a run that resumes there would lose it.
    - Records of ``ordered`` streams come in ascending order.
    - A bookmark does not go back, and at the end it is not behind the records.
    - A bookmark of a time that is not near the present advances by at least the time that the run takes.
    - The schema has all paths of the source's records.

    Args:
        clock: returns seconds.

    Attributes:
        problems: the broken assertions, each once for a stream: the stream and the reason.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.problems: list[tuple[str, str]] = []
        self._clock = clock
        self.begin()

    def begin(self, ordered: Mapping[str, str] | None = None, own_bookmarks: Collection[str] = ()) -> None:
        """Begin a run.

        Args:
            ordered: by stream, the property in whose order records come.
            own_bookmarks: streams whose bookmarks are not values of a property.
        """
        self._ordered, self._own_bookmarks = dict(ordered or {}), frozenset(own_bookmarks)
        self._streams: dict[str, _Progress] = {}
        self._state: Any = None
        self._broken: set[tuple[str, str]] = set()
        self._began = self._clock()

    def see(self, lines: bytes) -> None:
        """Check complete lines of stdout."""
        for line in lines.splitlines():
            message = _decode(line)
            kind, stream = message.get("type"), message.get("stream")
            if kind == "RECORD":
                self._record(stream, message["record"])
            elif kind == "SCHEMA":
                self._schema(stream, message)
            elif kind == "STATE":
                self._bookmarks(message["value"])

    def removed(self, stream: str, path: str) -> None:
        """Report a path of the source's records that the schema does not have."""
        self._break(stream, path, f"the path {path} is removed from records, because the schema does not have it")

    def finish(self, *, is_complete: bool) -> list[tuple[str, str]]:
        """Check the bookmarks at the end of a run.

        Args:
            is_complete: all streams were read to their ends.

        Returns:
            The problems of all runs.
        """
        seconds = self._clock() - self._began
        recent = (datetime.now(timezone.utc) - timedelta(seconds=seconds + SLOW_SECONDS)).isoformat()
        for stream, progress in self._streams.items():
            if is_complete and progress.key is not None and is_after(progress.highest, progress.bookmark):
                self._break(
                    stream, "behind", f"the bookmark {progress.bookmark!r} is behind the record {progress.highest!r}"
                )
            moved = seconds_between(progress.start, progress.bookmark)
            if moved is not None and 0 < moved < seconds >= SLOW_SECONDS and is_after(recent, progress.bookmark):
                self._break(stream, "slow", f"the bookmark advanced by {moved:.0f} s in a run of {seconds:.0f} s")
        return self.problems

    def _schema(self, stream: str, message: dict[str, Any]) -> None:
        keys = message.get("bookmark_properties")
        key = keys[0] if isinstance(keys, list) and keys and stream not in self._own_bookmarks else None
        if stream not in self._streams:
            start = bookmark_of(self._state, stream, key) if key else None
            self._streams[stream] = _Progress(key, start, start)

    def _record(self, stream: str, record: dict[str, Any]) -> None:
        progress = self._streams.get(stream)
        if progress is None:
            self._break(stream, "schema", "a record comes before its SCHEMA")
            return
        if name := self._ordered.get(stream):
            self._break_all(stream, progress.see_order(name, record.get(name)))
        if progress.key is not None:
            self._break_all(stream, progress.see_value(record.get(progress.key)))

    def _bookmarks(self, state: Any) -> None:
        self._state = state
        for stream, progress in self._streams.items():
            if progress.key is not None:
                self._break_all(stream, progress.see_bookmark(bookmark_of(state, stream, progress.key)))

    def _break_all(self, stream: str, broken: Iterable[tuple[str, str]]) -> None:
        for rule, reason in broken:
            self._break(stream, rule, reason)

    def _break(self, stream: str, rule: str, reason: str) -> None:
        if (stream, rule) not in self._broken:
            self._broken.add((stream, rule))
            self.problems.append((stream, reason))
