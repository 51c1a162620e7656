"""What a series learns from a value, and from one that is an anomaly.

An anomaly is not compared with. When anomalies are most of the values for ``adapt`` seconds, the history moves to their
level. After an anomaly, the next value must be well within the band: a value near a limit would end and begin the same
alert again and again.
"""

from __future__ import annotations

from array import array
from math import exp, isnan, log, log1p, nan, sqrt

from balog.watch.bands.band_history import BandHistory, BandOptions, median, season_of
from balog.watch.bands.bands import Band, limits
from balog.watch.bands.clock_changes import follow_clocks
from balog.watch.bands.holidays import is_holiday
from balog.watch.bands.month_days import note_day
from balog.watch.bands.seasons import choose_season
from balog.watch.bands.slots import OUT, bucket_of, phase_of, slot_of
from balog.watch.bands.spreads import renew_spread

_FOLLOWED = 1 / 12
"""The share of a residual that moves the drift."""

_RECURRING = 2


def recurs(history: BandHistory, value: float, band: Band, options: BandOptions) -> bool:
    """Return whether values like this one came on two days before at its hour: then it is normal."""
    season = season_of(history, options)
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


def learn(
    history: BandHistory, when: float, value: float, band: Band | None, options: BandOptions, *, is_anomaly: bool
) -> bool:
    """Add the value of a run that started at a time; return whether lasting anomalies have moved the history.

    Args:
        band: what was expected of it.
    """
    if not history.values:
        history.begun = when
    if band is not None:
        follow_clocks(history, when, value, band.slot, band.effect, options)
        history.owed = history.owed + band.center - value if value < band.plain[0] else 0.0
    if is_anomaly:
        history.calm = 0
        history.outlier_since = history.outlier_since if history.outliers else when
        history.outliers += 1
    elif history.outliers:
        history.calm += 1
        history.normal += 1
        if history.calm >= options.min_runs:
            history.forget_outliers()
    if history.has_room(when):
        _append(history, when, value, band, options, is_anomaly=is_anomaly)
    history.last = when
    lasted = when - history.outlier_since
    if is_anomaly and lasted >= options.adapt and history.outliers >= max(options.min_runs, history.normal):
        _move(history, options)
        return True
    return False


def _append(
    history: BandHistory, when: float, value: float, band: Band | None, options: BandOptions, *, is_anomaly: bool
) -> None:
    if band is None:
        hour = slot_of(when, history.phase, options.zone).hour
        history.append(when, value, nan, hour, options.training)
    else:
        is_usual = band.plain[0] <= value <= band.plain[1] and not is_holiday(band.slot.day)
        is_out = is_anomaly or (band.is_known and not is_usual)
        residual = log((value + 1) / (band.center + 1))
        note_day(history, band.slot.day, residual + band.effect)
        if not is_out and not any(history.month[1:3]):  # a peak of the month says nothing of the level
            limit = max(2 * history.spread, 0.02)
            history.drift += _FOLLOWED * min(max(residual, -limit), limit)
        kept = max((value + 1) / exp(band.effect) - 1, 0.0) if band.effect else value
        history.append(when, kept, residual, OUT if is_out else band.slot.hour, options.training)
    if history.learned >= history.choice:
        history.choice = history.learned + max(len(history.times) // 2, 1)
        _choose(history, options)
    if history.learned >= history.renewal:
        renew_spread(history)


def _choose(history: BandHistory, options: BandOptions) -> None:
    """Learn when the runs are scheduled, and choose the season anew."""
    times = history.times
    phase = phase_of(times, history.phase)
    if phase != history.phase:
        history.phase = phase
        history.set_hours(options.zone)
    if options.seasonality != "auto":
        return
    hours = [
        slot_of(time, phase, options.zone).hour if hour == OUT else hour for time, hour in zip(times, history.hours)
    ]
    season, distances = choose_season(history.values, hours, times[-1] - times[0])
    if season == history.season:
        return
    history.season = season
    history.hours[:] = bytes(hours)
    history.residuals[:] = array("f", distances)
    history.drift = 0.0
    renew_spread(history)
    half, varies = options.sensitivity * min(history.spread, 3.0), options.sensitivity * sqrt(history.counting)
    for index, distance in enumerate(distances):
        if not isnan(distance):
            low, high = limits(max((history.values[index] + 1) / exp(distance) - 1, 0.0), half, varies)
            if not low <= history.values[index] <= high:
                history.hours[index] = OUT


def _move(history: BandHistory, options: BandOptions) -> None:
    """Move the history to the level of the anomalies, which stay comparable from now on."""
    times, hours = history.times, history.hours
    first = next(index for index, time in enumerate(times) if time >= int(history.outlier_since))
    shifts = [diff for diff, hour in zip(history.residuals[first:], hours[first:]) if hour == OUT and diff == diff]
    shift = exp(median(shifts) + history.drift) if shifts else 1.0
    for index in range(first):
        history.values[index] = max((history.values[index] + 1) * shift - 1, 0.0)
    for index in range(first, len(times)):
        if hours[index] == OUT:
            hours[index] = slot_of(times[index], history.phase, options.zone).hour
            history.residuals[index] = nan
        else:
            hours[index] = OUT
    history.drift = 0.0
    history.forget_outliers()
