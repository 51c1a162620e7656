"""Detects whether failures rose after a version was applied, for the intake and for each job.

The rule: of n finished events, f failed. The confidence interval of the failure rate is Wilson's score interval (E. B.
Wilson, 1927) with z = 3.29: the true rate is outside in one of a thousand samples. Failures rose if the lower bound
after the version exceeds the upper bound before by at least ``rise``, with at least ``events`` finished since. A new
job is compared with a failure rate of 0. A job also fails if it has an error in every sample of the second half of the
window, and had none before the version, because a job that hangs finishes no events.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from balog.delivery.document import RollbackPolicy

_Z = 3.29
_LATE = 2  # least samples in the second half of the window, also on slow machines


class OutcomeCount(NamedTuple):
    """The counters of the intake or a job since its start: finished events, failures, and the current error or ""."""

    done: int
    failed: int
    error: str = ""


class _Sample(NamedTuple):
    at: float
    counts: Mapping[str, OutcomeCount]


class FailureMonitor:
    """Compares the counters since a version with those before it.

    Args:
        window: seconds of samples to keep before the first version is watched.
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
        """Record the current counters, about every second."""
        self._samples.append(_Sample(now, counts))
        while len(self._samples) > 1 and now - self._samples[1].at >= self._window:
            self._samples.popleft()
        if self._since is not None and now - self._since.at >= self._watch.window / 2:
            self._late_samples += 1
            for name, count in counts.items():
                if count.error:
                    self._failing[name] = self._failing.get(name, 0) + 1

    def begin(self, now: float, counts: Mapping[str, OutcomeCount], watch: RollbackPolicy) -> None:
        """Watch a version that was just applied. If another one is being watched, its baseline stays.

        Args:
            counts: the current counters; OutcomeCount(0, 0) for a restarted job.
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
        """Stop watching: the version is good, or was replaced."""
        self._since = self._before = None

    @property
    def is_watching(self) -> bool:
        """Whether a version is watched."""
        return self._since is not None

    def is_over(self, now: float) -> bool:
        """Return whether the version was watched for its whole window, with samples in the second half."""
        return self._since is not None and now - self._since.at >= self._watch.window and self._late_samples >= _LATE

    def find_failure(self, now: float) -> str:
        """Return which failures rose since the version, as a clause; "" if none rose significantly."""
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
        """Return incoming events per second and the share of failures, within the window."""
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
    """Return Wilson's score interval of a share; (0, 1) without observations."""
    if total <= 0:
        return 0.0, 1.0
    share, square = failed / total, z * z
    middle = share + square / (2 * total)
    reach = z * math.sqrt(share * (1 - share) / total + square / (4 * total * total))
    scale = 1 + square / total
    return max(0.0, (middle - reach) / scale), min(1.0, (middle + reach) / scale)


def _difference(count: OutcomeCount, earlier: OutcomeCount | None) -> OutcomeCount:
    """Return the difference of two counters; a restarted counter counts from 0."""
    if earlier is None or count.done < earlier.done or count.failed < earlier.failed:
        return count
    return OutcomeCount(count.done - earlier.done, count.failed - earlier.failed, count.error)
