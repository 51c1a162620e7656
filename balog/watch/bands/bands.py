"""A robust band of a series: what its next value should be, from its history.

The center is the trimmed mean of the last comparable values, such as those of the same hour of the week, moved by the
drift of the last residuals and by the day of the month. Half of the band is a number of spreads, as a logarithm,
widened by 5 / n for n residuals, because few of them say little. What counting explains is added in quadrature.
"""

from __future__ import annotations

from itertools import pairwise
from math import exp, log, log1p, sqrt

from balog.watch.bands.band_history import Band, BandHistory, BandOptions
from balog.watch.bands.estimates import GAPS, limits, places_of, spread_of, trimmed_mean
from balog.watch.bands.seasons import HOURLY, MIN_BUCKET, SEASON_SPAN
from balog.watch.bands.slots import OUT, bucket_of, neighbor_hours, slot_of
from balog.watch.bands.special_days import clocks_changed, is_holiday

RETURN = 0.75
"""The share of the band in which a value must be after an anomaly."""

_SETTLED = 14 * 86400.0
"""Seconds of history before a week can be compared with another."""

_RARE = 9.5
"""A zero whose chance is less than one in 13,000, as a logarithm, is an anomaly."""

_HOLIDAY = log(2.5)
"""What a holiday adds to half of the band, at most."""

_SUNDAY = 144
_MOST_SPREAD = 3.0
_IRREGULAR = 0.15

_RECURRING = 2


def expect(history: BandHistory, when: float, options: BandOptions) -> Band | None:
    """Return the band for the value of a run that started at a time; None without any comparable value."""
    slot = slot_of(when, history.phase, options.zone)
    season = history.season_by(options)
    places = places_of(history.hours, slot.hour, season)
    if not places:
        return None
    values = [history.values[index] for index in places]
    usual = log1p(trimmed_mean(values)) + history.drift
    effect, peak, has_months = history.effect_of(slot.day, options)
    center = max(exp(usual + effect) - 1, 0.0)
    sensitivity = options.sensitivity * (RETURN if history.outliers and not history.calm else 1)
    residuals = [history.residuals[index] for index in places]
    spread = min(spread_of(residuals, center, history.spread, history.counting), _MOST_SPREAD)
    half = max(sensitivity * spread * (1 + 5 / max(history.known, 1)), log1p(options.tolerance))
    varies = sensitivity * sqrt(history.counting)
    low, high = limits(center, half, varies)
    least = center
    if effect > 0:  # the peak of a month may be missing
        least = max(exp(usual) - 1, 0.0)
        low = limits(least, half, varies)[0]
    if peak > effect:
        high = limits(max(exp(usual + peak) - 1, 0.0), half, varies)[1]
    plain = low, high
    age = when - history.begun
    if options.seasonality == "auto" and age < _SETTLED:  # no week is like another yet
        low, high = min(low, *history.values), max(high, *history.values)
    ratio = _gap(history, when)
    others = []
    if season in HOURLY and (ratio != 1.0 or clocks_changed(slot.day, options.zone)):
        others += neighbor_hours(slot.hour)
    if is_holiday(slot.day):
        others.append(_SUNDAY + slot.hour % 24)
        half += min(_HOLIDAY, 10 * history.spread)
        low, high = min(low, limits(least, half, varies)[0]), max(high, limits(center, half, varies)[1])
    for hour in others:
        other = history.center_of(hour, season)
        if other is not None:
            reached = limits(max(exp(log1p(other) + history.drift) - 1, 0.0), half, varies)
            low, high = min(low, reached[0]), max(high, reached[1])
            least = min(least, other)
    if history.owed:
        high = max(high, limits(center + history.owed, half, varies)[1])
    is_known = (
        len(history.values) >= options.min_runs
        and history.known >= options.min_runs - 1
        and (season == "none" or len(places) >= MIN_BUCKET)
        and age >= SEASON_SPAN[season]
        and has_months
    )
    is_never_zero = all(values) and _is_rare_zero(history, least)
    return Band(center, low * min(ratio, 1.0), high * max(ratio, 1.0), is_known, slot, effect, plain, is_never_zero)


def _is_rare_zero(history: BandHistory, center: float) -> bool:
    """Return whether a negative binomial process does not explain a zero."""
    spread = max(history.spread, 0.01) ** 2
    return log1p(spread * center) / spread > _RARE * max(history.counting, 0.5)


def _gap(history: BandHistory, when: float) -> float:
    """Return the time since the last run in usual ones: a run after a skipped one may read for both."""
    if not history.every or not history.last:
        return 1.0
    gap = when - history.last
    ratio = max(gap, 0.0) / history.every
    if abs(ratio - 1) < _IRREGULAR:
        return 1.0
    alike = sum(abs(later - earlier - gap) < _IRREGULAR * gap for earlier, later in pairwise(history.times[-GAPS:]))
    return 1.0 if alike >= 3 else ratio


def recurs(history: BandHistory, value: float, band: Band, options: BandOptions) -> bool:
    """Return whether values like this one came on two days before at its hour: then it is normal."""
    season = history.season_by(options)
    if season == "none":
        return False
    season = "day_of_week" if season == "day_of_week" else "hour_of_day"
    bucket = bucket_of(season, band.slot.hour)
    days, size, alike = set(), log1p(value), 2 * log1p(options.tolerance)
    for time, other, hour in zip(history.times, history.values, history.hours):
        if hour == OUT and abs(log1p(other) - size) < alike:
            slot = slot_of(time, history.phase, options.zone)
            if bucket_of(season, slot.hour) == bucket:
                days.add(slot.day)
    return len(days - {band.slot.day}) >= _RECURRING
