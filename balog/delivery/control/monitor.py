"""Did failures rise since a version was applied? What came in and each job are judged, each against itself before.

The rule. Of n events that were finished, f failed. What can be said surely of the share of failures is Wilson's score
interval (E. B. Wilson, 1927) with z = 3.29, which a share leaves by chance once in a thousand looks. Failures rose when
the interval's low end after the version is above its high end before by at least ``rise``, with at least ``events``
finished since. What has no time before, as a new job, is compared with no failures at all. A job that is in trouble at
every look of the second half of the window, and at none before the version, fails too: what hangs finishes nothing.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from balog.delivery.document import RollbackPolicy

__all__ = ["FailureMonitor", "OutcomeCount", "wilson_interval"]

_Z = 3.29
_LATE = 2  # looks in the second half, however short the window and slow the machine


class OutcomeCount(NamedTuple):
    """Of one thing since it began: events that it finished well, failures, and what is wrong now, "" for nothing."""

    done: int
    failed: int
    error: str = ""


class _Sample(NamedTuple):
    at: float
    counts: Mapping[str, OutcomeCount]


class FailureMonitor:
    """Keeps the looks of a window, and judges those since a version by those before it.

    Args:
        window: seconds of looks that are kept, before any version is watched.
    """

    def __init__(self, window: float = 60.0) -> None:
        self._window = window
        self._samples: deque[_Sample] = deque()
        self._before: Mapping[str, OutcomeCount] | None = None
        self._since: _Sample | None = None
        self._watch = RollbackPolicy()
        self._failing: dict[str, int] = {}
        self._late_samples = 0
        self._had_error: frozenset[str] = frozenset()

    def sample(self, now: float, counts: Mapping[str, OutcomeCount]) -> None:
        """Note the counts as they are, every second or so."""
        self._samples.append(_Sample(now, counts))
        while len(self._samples) > 1 and now - self._samples[1].at >= self._window:
            self._samples.popleft()
        if self._since is not None and now - self._since.at >= self._watch.window / 2:
            self._late_samples += 1
            for name, count in counts.items():
                if count.error:
                    self._failing[name] = self._failing.get(name, 0) + 1

    def begin(self, now: float, counts: Mapping[str, OutcomeCount], watch: RollbackPolicy) -> None:
        """Watch a version that was applied just now; one that is watched already is judged by what was before it.

        Args:
            counts: from which it is counted. Of a job that was started anew, OutcomeCount(0, 0).
        """
        if self._since is None:
            first, last = (
                (self._samples[0], self._samples[-1]) if self._samples else (_Sample(now, {}), _Sample(now, {}))
            )
            self._before = {name: _difference(count, first.counts.get(name)) for name, count in last.counts.items()}
            self._had_error = frozenset(
                name for sample in self._samples for name, count in sample.counts.items() if count.error
            )
        self._since, self._watch, self._window = _Sample(now, counts), watch, watch.window
        self._failing, self._late_samples = {}, 0
        self._samples.clear()
        self._samples.append(self._since)

    def end(self) -> None:
        """Watch no longer: the version is good, or gone."""
        self._since = self._before = None

    @property
    def is_watching(self) -> bool:
        """Whether a version is watched."""
        return self._since is not None

    def is_over(self, now: float) -> bool:
        """Whether the version was watched for its whole window, and looked at in its second half."""
        return self._since is not None and now - self._since.at >= self._watch.window and self._late_samples >= _LATE

    def find_failure(self, now: float) -> str:
        """Say what rose since the version, as a clause; "" when nothing did surely."""
        if self._since is None or self._before is None or not self._samples:
            return ""
        for name, count in sorted(self._samples[-1].counts.items()):
            if found := self._find_rise(name, _difference(count, self._since.counts.get(name))):
                return found
        if self.is_over(now):
            for name, times in sorted(self._failing.items()):
                if times == self._late_samples and name not in self._had_error:
                    return f"{name} is failing: {self._samples[-1].counts[name].error}"
        return ""

    def rates(self) -> tuple[float, float]:
        """Return events a second, and the share of failures, of all that came in in the window."""
        if len(self._samples) < 2:
            return 0.0, 0.0
        first, last = self._samples[0], self._samples[-1]
        count = _difference(last.counts.get("intake", OutcomeCount(0, 0)), first.counts.get("intake"))
        total = count.done + count.failed
        return total / max(last.at - first.at, 1e-9), count.failed / total if total else 0.0

    def _find_rise(self, name: str, after: OutcomeCount) -> str:
        total = after.done + after.failed
        if total < self._watch.events or not after.failed:
            return ""
        before = (self._before or {}).get(name, OutcomeCount(0, 0))
        was = before.done + before.failed
        high = wilson_interval(before.failed, was)[1] if was else 0.0
        low = wilson_interval(after.failed, total)[0]
        if low < high + self._watch.rise:
            return ""
        error = self._samples[-1].counts[name].error
        earlier = f"{before.failed} of {was}" if was else "none"
        return f"{name}: {after.failed} of {total} failed since, {earlier} before" + (f"; {error}" if error else "")


def wilson_interval(failed: int, total: int, z: float = _Z) -> tuple[float, float]:
    """Return Wilson's score interval of a share; (0, 1) where nothing was seen."""
    if total <= 0:
        return 0.0, 1.0
    share, square = failed / total, z * z
    middle = share + square / (2 * total)
    reach = z * math.sqrt(share * (1 - share) / total + square / (4 * total * total))
    scale = 1 + square / total
    return max(0.0, (middle - reach) / scale), min(1.0, (middle + reach) / scale)


def _difference(count: OutcomeCount, earlier: OutcomeCount | None) -> OutcomeCount:
    """Return what was counted between two looks; counters that began anew count from nothing."""
    if earlier is None or count.done < earlier.done or count.failed < earlier.failed:
        return count
    return OutcomeCount(count.done - earlier.done, count.failed - earlier.failed, count.error)
