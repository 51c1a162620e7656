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
    trouble: str = ""


class _Look(NamedTuple):
    at: float
    counts: Mapping[str, OutcomeCount]


class FailureMonitor:
    """Keeps the looks of a window, and judges those since a version by those before it.

    Args:
        window: seconds of looks that are kept, before any version is watched.
    """

    def __init__(self, window: float = 60.0) -> None:
        self._window = window
        self._looks: deque[_Look] = deque()
        self._before: Mapping[str, OutcomeCount] | None = None
        self._since: _Look | None = None
        self._watch = RollbackPolicy()
        self._troubled: dict[str, int] = {}
        self._late_looks = 0
        self._had_trouble: frozenset[str] = frozenset()

    def look(self, now: float, counts: Mapping[str, OutcomeCount]) -> None:
        """Note the counts as they are, every second or so."""
        self._looks.append(_Look(now, counts))
        while len(self._looks) > 1 and now - self._looks[1].at >= self._window:
            self._looks.popleft()
        if self._since is not None and now - self._since.at >= self._watch.window / 2:
            self._late_looks += 1
            for name, count in counts.items():
                if count.trouble:
                    self._troubled[name] = self._troubled.get(name, 0) + 1

    def begin(self, now: float, counts: Mapping[str, OutcomeCount], watch: RollbackPolicy) -> None:
        """Watch a version that was applied just now; one that is watched already is judged by what was before it.

        Args:
            counts: from which it is counted. Of a job that was started anew, OutcomeCount(0, 0).
        """
        if self._since is None:
            first, last = (self._looks[0], self._looks[-1]) if self._looks else (_Look(now, {}), _Look(now, {}))
            self._before = {name: _less(count, first.counts.get(name)) for name, count in last.counts.items()}
            self._had_trouble = frozenset(
                name for look in self._looks for name, count in look.counts.items() if count.trouble
            )
        self._since, self._watch, self._window = _Look(now, counts), watch, watch.window
        self._troubled, self._late_looks = {}, 0
        self._looks.clear()
        self._looks.append(self._since)

    def end(self) -> None:
        """Watch no longer: the version is good, or gone."""
        self._since = self._before = None

    @property
    def is_watching(self) -> bool:
        """Whether a version is watched."""
        return self._since is not None

    def is_over(self, now: float) -> bool:
        """Whether the version was watched for its whole window, and looked at in its second half."""
        return self._since is not None and now - self._since.at >= self._watch.window and self._late_looks >= _LATE

    def verdict(self, now: float) -> str:
        """Say what rose since the version, as a clause; "" when nothing did surely."""
        if self._since is None or self._before is None or not self._looks:
            return ""
        for name, count in sorted(self._looks[-1].counts.items()):
            if found := self._judge(name, _less(count, self._since.counts.get(name))):
                return found
        if self.is_over(now):
            for name, times in sorted(self._troubled.items()):
                if times == self._late_looks and name not in self._had_trouble:
                    return f"{name} is in trouble: {self._looks[-1].counts[name].trouble}"
        return ""

    def rates(self) -> tuple[float, float]:
        """Give events a second, and the share of failures, of all that came in in the window."""
        if len(self._looks) < 2:
            return 0.0, 0.0
        first, last = self._looks[0], self._looks[-1]
        count = _less(last.counts.get("intake", OutcomeCount(0, 0)), first.counts.get("intake"))
        total = count.done + count.failed
        return total / max(last.at - first.at, 1e-9), count.failed / total if total else 0.0

    def _judge(self, name: str, after: OutcomeCount) -> str:
        total = after.done + after.failed
        if total < self._watch.events or not after.failed:
            return ""
        before = (self._before or {}).get(name, OutcomeCount(0, 0))
        was = before.done + before.failed
        high = wilson_interval(before.failed, was)[1] if was else 0.0
        low = wilson_interval(after.failed, total)[0]
        if low < high + self._watch.rise:
            return ""
        trouble = self._looks[-1].counts[name].trouble
        earlier = f"{before.failed} of {was}" if was else "none"
        return f"{name}: {after.failed} of {total} failed since, {earlier} before" + (f"; {trouble}" if trouble else "")


def wilson_interval(failed: int, total: int, z: float = _Z) -> tuple[float, float]:
    """Give Wilson's score interval of a share; (0, 1) where nothing was seen."""
    if total <= 0:
        return 0.0, 1.0
    share, square = failed / total, z * z
    middle = share + square / (2 * total)
    reach = z * math.sqrt(share * (1 - share) / total + square / (4 * total * total))
    scale = 1 + square / total
    return max(0.0, (middle - reach) / scale), min(1.0, (middle + reach) / scale)


def _less(count: OutcomeCount, earlier: OutcomeCount | None) -> OutcomeCount:
    """Give what was counted between two looks; counters that began anew count from nothing."""
    if earlier is None or count.done < earlier.done or count.failed < earlier.failed:
        return count
    return OutcomeCount(count.done - earlier.done, count.failed - earlier.failed, count.trouble)
