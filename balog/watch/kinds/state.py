"""State: a bookmark that does not advance."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator

from msgspec import Struct

from balog.singer.bookmarks import bookmarks
from balog.watch.config.durations import format_duration, parse_duration
from balog.watch.config.kind_config import StateProgress
from balog.watch.kinds.base import SeriesSample, Verdict
from balog.watch.observations import StateObserved


class BookmarkState(Struct):
    """The bookmark of a stream, by its hash.

    Attributes:
        since: when it was first seen.
        runs: number of runs that ended with it; ``run`` is the last one.
    """

    bookmark: str = ""
    since: float = 0.0
    runs: int = 0
    run: str = ""
    is_late: bool = False


class StateEvaluator:
    """Judges the bookmarks of each stream. Without runs' ids, each STATE counts as that of a run."""

    wants = (StateObserved,)
    state_type = BookmarkState
    starts_early = False

    def __init__(self, options: StateProgress) -> None:
        self._runs = options.unchanged_runs
        self._time = None if options.unchanged_for is None else parse_duration(options.unchanged_for)

    def samples(self, observation: StateObserved) -> Iterator[SeriesSample]:
        """Yield a hash of the bookmarks of each stream."""
        streams: defaultdict[str, list[str]] = defaultdict(list)
        for bookmark in bookmarks(observation.value):
            streams[bookmark.stream].append(f"{bookmark.name}={bookmark.value}")
        for stream, leaves in streams.items():
            digest = hashlib.blake2b("\n".join(sorted(leaves)).encode("utf-8", "replace"), digest_size=12).hexdigest()
            yield SeriesSample(observation.pipeline, stream, (digest, observation.run), observation.run)

    def judge(self, state: BookmarkState, value: tuple[str, str], now: float) -> Verdict:
        """Compare a bookmark with that of the last run."""
        digest, run = value
        if digest != state.bookmark:
            state.bookmark, state.since, state.runs, state.run, state.is_late = digest, now, 1, run, False
            return Verdict("ok", "The bookmark has advanced.", 1.0)
        if not run or run != state.run:
            state.runs, state.run = state.runs + 1, run
        return self._verdict(state, now)

    def deadline(self, state: BookmarkState) -> float | None:
        """Return when the bookmark has not advanced for too long."""
        return state.since + self._time if self._time is not None and not state.is_late and state.bookmark else None

    def tick(self, state: BookmarkState, now: float) -> Verdict:
        """Judge the bookmark's age."""
        return self._verdict(state, now)

    def _verdict(self, state: BookmarkState, now: float) -> Verdict:
        if self._runs is not None and state.runs >= self._runs:
            return Verdict("bad", f"The bookmark is the same after {state.runs} runs.", float(state.runs))
        if self._time is not None and state.since + self._time <= now:
            state.is_late = True
            return Verdict(
                "bad", f"The bookmark has not advanced for {format_duration(self._time)}.", now - state.since
            )
        return Verdict("ok", f"The bookmark is the same after {state.runs} runs.", float(state.runs))
