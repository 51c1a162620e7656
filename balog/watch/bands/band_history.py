"""The learned values of one series, in bounded memory, and the options of its band."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from datetime import tzinfo
from typing import NamedTuple

from msgspec import Struct, field

from balog.watch.bands.arrays import Numbers
from balog.watch.bands.slots import OUT, slot_of
from balog.watch.config.kind_config import Season, Seasonality

MAX_VALUES = 1008
"""Values that are kept: six weeks of an hourly series."""

TRAINING = 91 * 86400.0
"""Seconds for which a volume monitor remembers a run."""

MAX_PER_HOUR = 4
"""Values of one hour that are learned; further ones of a frequent series would say the same."""


class BandOptions(NamedTuple):
    """How a band is computed.

    Attributes:
        training: seconds after which a run is forgotten.
        min_runs: runs before a value is judged.
        adapt: seconds after which a lasting new level is the normal one.
    """

    sensitivity: float
    tolerance: float
    seasonality: Seasonality
    zone: tzinfo
    training: float = TRAINING
    min_runs: int = 5
    adapt: float = 7 * 86400.0


class BandHistory(Struct):
    """The learned values of one series, oldest first, about 13 bytes each, and one number for each day of a year.

    Attributes:
        times: when the runs started.
        residuals: distances from the centers that were expected; NaN without comparable values.
        hours: the hour of the week of each value, ``OUT`` for one that is not compared.
        season: what was chosen last; None for nothing yet.
        phase: seconds after the hour at which the runs are scheduled; negative for none.
        days: the median residual of each day from ``first_day`` on, an ordinal, without what the day of the month adds.
        today: residuals of the day after them.
        month: an ordinal, what that day of the month adds, the largest peak it may have, and the months it is known.
        clocks: while clocks change: since when, and how much better the values fit the hour before, and the one after.
        last: when the last run started.
        every: seconds between two runs, as a rule.
        outliers: anomalies since the series was normal, the first at ``outlier_since``.
        calm: normal values since the last anomaly.
        normal: normal values since the first anomaly.
        learned: number of values that were ever learned; ``renewal`` and ``choice`` are those with which the spread and
            the season are computed anew.
        spread: that of the residuals; ``day_spread`` is that of the days.
        counting: how much of a Poisson process the values vary like: 0 for a table that is read whole.
        drift: how far the last values were from their centers.
        known: number of residuals.
        owed: what the last values were less than their centers: the next one may make up for it.
    """

    times: Numbers = field(default_factory=lambda: array("I"))
    values: Numbers = field(default_factory=lambda: array("f"))
    residuals: Numbers = field(default_factory=lambda: array("f"))
    hours: bytearray = field(default_factory=bytearray)
    season: Season | None = None
    phase: float = -1.0
    days: Numbers = field(default_factory=lambda: array("f"))
    first_day: int = 0
    today: Numbers = field(default_factory=lambda: array("f"))
    month: tuple[int, float, float, int] = (0, 0.0, 0.0, 0)
    clocks: tuple[float, float, float] = (0.0, 0.0, 0.0)
    last: float = 0.0
    every: float = 0.0
    outliers: int = 0
    outlier_since: float = 0.0
    calm: int = 0
    normal: int = 0
    begun: float = 0.0
    learned: int = 0
    renewal: int = 0
    choice: int = 0
    spread: float = 0.0
    counting: float = 1.0
    day_spread: float = 0.0
    drift: float = 0.0
    known: int = 0
    owed: float = 0.0

    def has_room(self, when: float) -> bool:
        """Return whether a value of this hour is still learned."""
        return len(self.times) < MAX_PER_HOUR or self.times[-MAX_PER_HOUR] // 3600 != int(when) // 3600

    def append(self, when: float, value: float, residual: float, hour: int, training: float) -> None:
        """Add a value, and drop those that are older than ``training`` seconds or too many."""
        self.times.append(int(when))
        self.values.append(value)
        self.residuals.append(residual)
        self.hours.append(hour)
        old = max(len(self.times) - MAX_VALUES, 0)
        while self.times[old] < when - training:
            old += 1
        if old:
            for part in (self.times, self.values, self.residuals, self.hours):
                del part[:old]
        self.learned += 1

    def set_hours(self, zone: tzinfo) -> None:
        """Find the hours of the values anew, after another phase."""
        for index, time in enumerate(self.times):
            if self.hours[index] != OUT:
                self.hours[index] = slot_of(time, self.phase, zone).hour

    def forget_outliers(self) -> None:
        """Reset the counts of anomalies."""
        self.outliers = self.calm = self.normal = 0


def season_of(history: BandHistory, options: BandOptions) -> Season:
    """Return which runs are comparable within a week."""
    if options.seasonality == "auto":
        return history.season or "none"
    return "none" if options.seasonality == "day_of_month" else options.seasonality


def median(values: Sequence[float]) -> float:
    """Return the median of at least one value."""
    ordered: list[float] = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
