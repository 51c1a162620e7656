"""State: a bookmark that does not advance."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator

from msgspec import Struct

from balog.singer.bookmarks import bookmarks
from balog.watch.config.monitors import MonitorConfig, StateProgress
from balog.watch.kinds.base import Evaluator, SeriesMemory, SeriesSample, Verdict
from balog.watch.observations import StateObserved
from balog.watch.state_machine import Signal


class BookmarkState(Struct, SeriesMemory):
    """The bookmark of a stream, by its hash, and the number of runs that ended with it; ``run`` is the last one."""

    bookmark: str = ""
    runs: int = 0
    run: str = ""

    def judge(self, evaluator: StateEvaluator, value: tuple[str, str], now: float) -> Verdict:
        """Compare a bookmark with that of the last run."""
        digest, run = value
        if digest != self.bookmark:
            self.bookmark, self.runs, self.run = digest, 1, run
            return Verdict("ok", "The bookmark has advanced.", 1.0)
        if not run or run != self.run:
            self.runs, self.run = self.runs + 1, run
        signal: Signal = "bad" if self.runs >= evaluator.most_runs else "ok"
        return Verdict(signal, f"The bookmark is the same after {self.runs} runs.", float(self.runs))


class StateEvaluator(Evaluator):
    """Judges the bookmarks of each stream. Without runs' ids, each STATE counts as that of a run."""

    wants = (StateObserved,)
    state_type = BookmarkState

    def __init__(self, options: StateProgress, monitor: MonitorConfig) -> None:
        self.most_runs = options.unchanged_runs

    def samples(self, observation: StateObserved) -> Iterator[SeriesSample]:
        """Yield a hash of the bookmarks of each stream."""
        streams: defaultdict[str, list[str]] = defaultdict(list)
        for bookmark in bookmarks(observation.value):
            streams[bookmark.stream].append(f"{bookmark.name}={bookmark.value}")
        for stream, leaves in streams.items():
            digest = hashlib.blake2b("\n".join(sorted(leaves)).encode("utf-8", "replace"), digest_size=12).hexdigest()
            yield SeriesSample(observation.pipeline, stream, (digest, observation.run), observation.run)
