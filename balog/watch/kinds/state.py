"""State: a bookmark that does not advance."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator

from msgspec import Struct

from balog.singer.bookmarks import bookmarks
from balog.watch.config.durations import format_duration, parse_duration
from balog.watch.config.monitors import MonitorConfig, StateProgress
from balog.watch.kinds.base import Evaluator, SeriesMemory, SeriesSample, Verdict
from balog.watch.observations import StateObserved


class BookmarkState(Struct, SeriesMemory):
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

    def judge(self, evaluator: StateEvaluator, value: tuple[str, str], now: float) -> Verdict:
        """Compare a bookmark with that of the last run."""
        digest, run = value
        if digest != self.bookmark:
            self.bookmark, self.since, self.runs, self.run, self.is_late = digest, now, 1, run, False
            return Verdict("ok", "The bookmark has advanced.", 1.0)
        if not run or run != self.run:
            self.runs, self.run = self.runs + 1, run
        return self._verdict(evaluator, now)

    def deadline(self, evaluator: StateEvaluator) -> float | None:
        """Return when the bookmark has not advanced for too long."""
        return (
            self.since + evaluator.most_time
            if evaluator.most_time is not None and not self.is_late and self.bookmark
            else None
        )

    def tick(self, evaluator: StateEvaluator, now: float) -> Verdict:
        """Judge the bookmark's age."""
        return self._verdict(evaluator, now)

    def _verdict(self, evaluator: StateEvaluator, now: float) -> Verdict:
        if evaluator.most_runs is not None and self.runs >= evaluator.most_runs:
            return Verdict("bad", f"The bookmark is the same after {self.runs} runs.", float(self.runs))
        if evaluator.most_time is not None and self.since + evaluator.most_time <= now:
            self.is_late = True
            return Verdict(
                "bad", f"The bookmark has not advanced for {format_duration(evaluator.most_time)}.", now - self.since
            )
        return Verdict("ok", f"The bookmark is the same after {self.runs} runs.", float(self.runs))


class StateEvaluator(Evaluator):
    """Judges the bookmarks of each stream. Without runs' ids, each STATE counts as that of a run."""

    wants = (StateObserved,)
    state_type = BookmarkState

    def __init__(self, options: StateProgress, monitor: MonitorConfig) -> None:
        self.most_runs = options.unchanged_runs
        self.most_time = None if options.unchanged_for is None else parse_duration(options.unchanged_for)

    def samples(self, observation: StateObserved) -> Iterator[SeriesSample]:
        """Yield a hash of the bookmarks of each stream."""
        streams: defaultdict[str, list[str]] = defaultdict(list)
        for bookmark in bookmarks(observation.value):
            streams[bookmark.stream].append(f"{bookmark.name}={bookmark.value}")
        for stream, leaves in streams.items():
            digest = hashlib.blake2b("\n".join(sorted(leaves)).encode("utf-8", "replace"), digest_size=12).hexdigest()
            yield SeriesSample(observation.pipeline, stream, (digest, observation.run), observation.run)
