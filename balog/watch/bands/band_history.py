"""What a series has learned from its values, in bounded memory, and the options of its band.

An anomaly is not compared with. When anomalies are most of the values for ``adapt`` seconds, the history moves to their
level. After an anomaly, the next value must be well within the band: a value near a limit would end and begin the same
alert again and again.
"""

from __future__ import annotations

from array import array
from datetime import date, tzinfo
from itertools import pairwise
from math import exp, isnan, log, log1p, nan, sqrt
from statistics import median
from typing import NamedTuple

from msgspec import Struct, field

from balog.watch.bands.arrays import Numbers
from balog.watch.bands.estimates import GAPS, MEDIAN_SQUARE, RENEWED, limits, measure_spread, places_of, trimmed_mean
from balog.watch.bands.seasons import HOURLY, MIN_BUCKET, choose_season
from balog.watch.bands.slots import OUT, Slot, neighbor_hours, phase_of, slot_of
from balog.watch.bands.special_days import MAX_DAYS, clocks_changed, is_holiday, month_effect
from balog.watch.config.monitors import Season, Seasonality

MAX_VALUES = 1008
"""Values that are kept: six weeks of an hourly series."""

TRAINING = 91 * 86400.0
"""Seconds for which a volume monitor remembers a run."""

MAX_PER_HOUR = 4
"""Values of one hour that are learned; further ones of a frequent series would say the same."""

_FOLLOWED = 1 / 12
"""The share of a residual that moves the drift."""

_MOST, _CONVINCED = 0.7, 2.0
"""The most that a value says about the hour that it belongs to, and what is enough, as logarithms."""


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


class Band(NamedTuple):
    """The expected value and its limits.

    Attributes:
        is_known: whether the limits can be relied on; else the series is learning.
        effect: what the day of the month adds to the center, as a logarithm; 0 for nothing.
        plain: the limits without what a longer or shorter time since the last run explains.
    """

    center: float
    low: float
    high: float
    is_known: bool
    slot: Slot
    effect: float
    plain: tuple[float, float]
    is_never_zero: bool


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

    def season_by(self, options: BandOptions) -> Season:
        """Return which runs are comparable within a week."""
        if options.seasonality == "auto":
            return self.season or "none"
        return "none" if options.seasonality == "day_of_month" else options.seasonality

    def center_of(self, hour: int, season: Season) -> float | None:
        """Return the center of an hour of the week; None without a comparable value."""
        places = places_of(self.hours, hour, season)
        return trimmed_mean([self.values[index] for index in places]) if places else None

    def effect_of(self, day: date, options: BandOptions) -> tuple[float, float, bool]:
        """Return what a day of the month adds to the center.

        Returns:
            The effect as a logarithm, 0 for a day like others; the largest one that it may have, by the days around the
            same ones; and whether enough months have passed, if all days of the month are compared.
        """
        if options.seasonality not in ("auto", "day_of_month"):
            return 0.0, 0.0, True
        is_own, ordinal = options.seasonality == "day_of_month", day.toordinal()
        if self.month[0] != ordinal:
            self.month = (ordinal, *month_effect(self.days, self.first_day, self.day_spread, day, is_own=is_own))
        _, effect, peak, count = self.month
        return effect, peak, not is_own or count >= MIN_BUCKET

    def learn(self, when: float, value: float, band: Band | None, options: BandOptions, *, is_anomaly: bool) -> bool:
        """Add the value of a run that started at a time; return whether lasting anomalies have moved the history.

        Args:
            band: what was expected of it.
        """
        if not self.values:
            self.begun = when
        if band is not None:
            self._follow_clocks(when, value, band, options)
            self.owed = self.owed + band.center - value if value < band.plain[0] else 0.0
        if is_anomaly:
            self.calm = 0
            self.outlier_since = self.outlier_since if self.outliers else when
            self.outliers += 1
        elif self.outliers:
            self.calm += 1
            self.normal += 1
            if self.calm >= options.min_runs:
                self._forget_outliers()
        if len(self.times) < MAX_PER_HOUR or self.times[-MAX_PER_HOUR] // 3600 != int(when) // 3600:
            self._append(when, value, band, options, is_anomaly=is_anomaly)
        self.last = when
        lasted = when - self.outlier_since
        if is_anomaly and lasted >= options.adapt and self.outliers >= max(options.min_runs, self.normal):
            self._move(options)
            return True
        return False

    def _append(self, when: float, value: float, band: Band | None, options: BandOptions, *, is_anomaly: bool) -> None:
        if band is None:
            hour = slot_of(when, self.phase, options.zone).hour
            self._keep(when, value, nan, hour, options.training)
        else:
            is_usual = band.plain[0] <= value <= band.plain[1] and not is_holiday(band.slot.day)
            is_out = is_anomaly or (band.is_known and not is_usual)
            residual = log((value + 1) / (band.center + 1))
            self._note_day(band.slot.day, residual + band.effect)
            if not is_out and not any(self.month[1:3]):  # a peak of the month says nothing of the level
                limit = max(2 * self.spread, 0.02)
                self.drift += _FOLLOWED * min(max(residual, -limit), limit)
            kept = max((value + 1) / exp(band.effect) - 1, 0.0) if band.effect else value
            self._keep(when, kept, residual, OUT if is_out else band.slot.hour, options.training)
        if self.learned >= self.choice:
            self.choice = self.learned + max(len(self.times) // 2, 1)
            self._choose(options)
        if self.learned >= self.renewal:
            self._renew_spread()

    def _keep(self, when: float, value: float, residual: float, hour: int, training: float) -> None:
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

    def _choose(self, options: BandOptions) -> None:
        """Learn when the runs are scheduled, and choose the season anew."""
        times = self.times
        phase = phase_of(times, self.phase)
        if phase != self.phase:
            self.phase = phase
            self._set_hours(options.zone)
        if options.seasonality != "auto":
            return
        hours = [
            slot_of(time, phase, options.zone).hour if hour == OUT else hour for time, hour in zip(times, self.hours)
        ]
        season, distances = choose_season(self.values, hours, times[-1] - times[0])
        if season == self.season:
            return
        self.season = season
        self.hours[:] = bytes(hours)
        self.residuals[:] = array("f", distances)
        self.drift = 0.0
        self._renew_spread()
        half, varies = options.sensitivity * min(self.spread, 3.0), options.sensitivity * sqrt(self.counting)
        for index, distance in enumerate(distances):
            if not isnan(distance):
                low, high = limits(max((self.values[index] + 1) / exp(distance) - 1, 0.0), half, varies)
                if not low <= self.values[index] <= high:
                    self.hours[index] = OUT

    def _move(self, options: BandOptions) -> None:
        """Move the history to the level of the anomalies, which stay comparable from now on."""
        times, hours = self.times, self.hours
        first = next(index for index, time in enumerate(times) if time >= int(self.outlier_since))
        shifts = [diff for diff, hour in zip(self.residuals[first:], hours[first:]) if hour == OUT and diff == diff]
        shift = exp(median(shifts) + self.drift) if shifts else 1.0
        for index in range(first):
            self.values[index] = max((self.values[index] + 1) * shift - 1, 0.0)
        for index in range(first, len(times)):
            if hours[index] == OUT:
                hours[index] = slot_of(times[index], self.phase, options.zone).hour
                self.residuals[index] = nan
            else:
                hours[index] = OUT
        self.drift = 0.0
        self._forget_outliers()

    def _follow_clocks(self, when: float, value: float, band: Band, options: BandOptions) -> None:
        """Move the history by an hour if the values since clocks changed fit the hours beside theirs much better."""
        season, slot = self.season_by(options), band.slot
        if season not in HOURLY or not clocks_changed(slot.day, options.zone):
            self.clocks = (0.0, 0.0, 0.0)
            return
        since, *scores = self.clocks
        if since < 0:
            return  # they have been followed

        def distance(hour: int) -> float:
            center = self.center_of(hour, season)
            if center is None:
                return _MOST
            return min(abs(log1p(value) - log1p(center) - self.drift - band.effect), _MOST)

        own = distance(slot.hour)
        scores = [max(score + own - distance(hour), 0.0) for score, hour in zip(scores, neighbor_hours(slot.hour))]
        if max(scores) <= _CONVINCED:
            self.clocks = (since or when if any(scores) else 0.0, scores[0], scores[1])
            return
        step = -3600 if scores[0] > scores[1] else 3600
        for index, time in enumerate(self.times):
            if time < since:
                self.times[index] = time - step
        self._set_hours(options.zone)
        self.clocks = (-1.0, 0.0, 0.0)

    def _note_day(self, day: date, residual: float) -> None:
        """Add a residual to its day; the median of the day before is kept when a new day begins."""
        ordinal = day.toordinal()
        if not self.first_day:
            self.first_day = ordinal
        current = self.first_day + len(self.days)
        if ordinal > current:
            self.days.append(median(self.today) if self.today else nan)
            self.days.extend([nan] * min(ordinal - current - 1, MAX_DAYS))
            old = max(len(self.days) - MAX_DAYS, 0)
            self.first_day = ordinal - len(self.days) + old
            del self.days[:old]
            self.today = array("f")
        self.today.append(residual)

    def _renew_spread(self) -> None:
        """Compute the spread from the residuals, and the usual time between two runs."""
        measured = measure_spread(self.values, self.residuals, self.hours)
        if measured is None:
            self.known = 0
        else:
            self.known, self.counting, self.spread = measured
        days = [value * value for value in self.days if value == value]
        self.day_spread = sqrt(median(days) / MEDIAN_SQUARE) if days else 0.0
        gaps = [later - earlier for earlier, later in pairwise(self.times[-GAPS:])]
        self.every = median(gaps) if len(gaps) >= 3 else 0.0
        self.renewal = self.learned + max(self.known // RENEWED, 1)

    def _set_hours(self, zone: tzinfo) -> None:
        """Find the hours of the values anew, after another phase."""
        for index, time in enumerate(self.times):
            if self.hours[index] != OUT:
                self.hours[index] = slot_of(time, self.phase, zone).hour

    def _forget_outliers(self) -> None:
        """Reset the counts of anomalies."""
        self.outliers = self.calm = self.normal = 0
