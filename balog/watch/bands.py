"""A robust band of a series: what its next value should be, learned from its history.

The center is the trimmed mean of the last comparable values, such as those of the same hour of the week (``seasons``
chooses which are comparable), moved by the drift of the last residuals: a growing series does not alarm for ever. A day
of the month moves it too, if the days of its number, or those as far from the month's end, deviated alike.

The spread is that of the residuals, ln((value + 1) / (center + 1)), without the part that counting explains: a count
varies like a Poisson process, by the root of its center. It is the larger one of two robust estimates: the median of
the residuals' squares, the modified z-score of Iglewicz and Hoaglin, "How to Detect and Handle Outliers" (1993), and
their 90th percentile, for tails. It is widened by 5 / n for n residuals, because few of them say little. Counting is
added again as variances are, in quadrature.

An anomaly is not compared with. When anomalies are most of the values for ``adapt`` seconds, the history moves to their
level. After an anomaly, the next value must be well within the band: a value near a limit would end and begin the same
alert again and again.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from datetime import date, tzinfo
from itertools import pairwise
from math import exp, hypot, isnan, log, log1p, nan, sqrt
from operator import itemgetter
from typing import NamedTuple

from msgspec import Struct, field

from balog.watch.arrays import Numbers
from balog.watch.kind_config import Season, Seasonality
from balog.watch.seasons import (
    MIN_BUCKET,
    OUT,
    SEASON_SPAN,
    WEEK,
    Slot,
    choose_season,
    clocks_changed,
    is_special,
    phase_of,
    places_of,
    same_days,
    slot_of,
)

MAX_VALUES = 1008
"""Values that are kept: six weeks of an hourly series."""

MAX_COMPARABLE = 16
"""Values that a center is made of: the last ones of its slot."""

MAX_RESIDUALS = 512
"""The last residuals, of which the spread is made."""

MAX_PER_HOUR = 4
"""Values of one hour that are learned; further ones of a frequent series would say the same."""

MONTHS = 12
"""Months whose days are remembered, one number a day."""

RETURN = 0.75
"""The share of the band in which a value must be after an anomaly."""

RENEWED = 16
"""The spread is computed anew when one of so many of its residuals is new."""

_MAX_DAYS = 31 * (MONTHS + 1)
_SETTLED = 14 * 86400.0
"""Seconds of history before a week can be compared with another."""

_FOLLOWED = 1 / 12
"""The share of a residual that moves the drift."""

_MEDIAN_SQUARE, _HIGH_SQUARE = 0.4549, 2.7055
"""The median and the 90th percentile of the square of a normal value."""

_NOTABLE = 3.0
"""Spreads of days beyond which a day of the month is of its own."""

_LEAST = log(1.12)
_NEAR = 2
"""Days before and after, in which a peak of a month may come again: a bank works on no Sunday."""

_RARE = 9.5
"""A zero whose chance is less than one in 13,000, as a logarithm, is an anomaly."""

_MOST, _CONVINCED = 0.7, 2.0
"""The most that a value says about the hour that it belongs to, and what is enough, as logarithms."""

_HOURS = ("hour_of_day", "hour_of_week")
_HOLIDAY = log(2.5)
_MOST_COUNTING = 30.0
_MOST_SPREAD = 3.0
_MIN_OWN = 4
_ALIKE, _RECURRING = log(2.5), 3
_WEIGHT = 8
"""How many residuals of its own a slot needs to count as much as all others."""

_SMALL, _LARGE = 20.0, 100.0
_GAPS = 24
_IRREGULAR = 0.15


class BandOptions(NamedTuple):
    """How a band is computed; times are in seconds."""

    sensitivity: float
    tolerance: float
    seasonality: Seasonality
    training: float
    min_runs: int
    adapt: float
    zone: tzinfo


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
    month: tuple[int, float, float, int, bool] = (0, 0.0, 0.0, 0, False)
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


def expect(history: BandHistory, when: float, options: BandOptions) -> Band | None:
    """Return the band for the value of a run that started at a time; None without any comparable value."""
    slot = slot_of(when, history.phase, options.zone)
    season = season_of(history, options)
    places = places_of(history.hours, slot.hour, season, MAX_COMPARABLE)
    if not places:
        return None
    values = history.values
    center = trimmed_mean([values[place] for place in places])
    usual = log1p(center) + history.drift
    effect, peak, is_certain, has_months = _of_month(history, slot.day, options)
    center = _value(usual + effect)
    sensitivity = options.sensitivity
    if history.outliers and not history.calm:
        sensitivity *= RETURN
    spread = min(_spread_of(history, places, center), _MOST_SPREAD)
    half = max(sensitivity * spread * (1 + 5 / max(history.known, 1)), log1p(options.tolerance))
    varies = sensitivity * sqrt(history.counting)
    centers = [center]
    if effect > 0 and not is_certain:
        centers.append(_value(usual))
    if peak > effect:
        centers.append(_value(usual + peak))
    plain = _limits(centers, half, varies)
    ratio = _gap(history, when)
    centers += _others(history, slot, season, options, is_shifted=ratio != 1.0)
    if is_special(slot.day):
        half += min(_HOLIDAY, 10 * history.spread)
    low, high = _limits(centers, half, varies)
    if options.seasonality == "auto" and when - history.begun < _SETTLED:  # no week is like another yet
        low, high = min([low, *values]), max([high, *values])
    is_known = (
        len(values) >= options.min_runs
        and history.known >= options.min_runs - 1
        and (season == "none" or len(places) >= MIN_BUCKET)
        and when - history.begun >= SEASON_SPAN[season]
        and has_months
    )
    is_never_zero = _is_never_zero(history, places, min(centers))
    return Band(center, low * min(ratio, 1.0), high * max(ratio, 1.0), is_known, slot, effect, plain, is_never_zero)


def _others(
    history: BandHistory, slot: Slot, season: Season, options: BandOptions, *, is_shifted: bool
) -> Iterator[float]:
    """Yield the centers of other slots that a run may be like: Sunday's on a holiday, those of the hours beside it."""
    hours = [144 + slot.hour % 24] if is_special(slot.day) else []
    if season in _HOURS and (is_shifted or clocks_changed(slot.day, options.zone)):
        hours += [(slot.hour + step) % WEEK for step in (-1, 1)]
    for hour in hours:
        other = _center(history, hour, season)
        if other is not None:
            yield _value(log1p(other) + history.drift)


def _value(logarithm: float) -> float:
    return max(exp(logarithm) - 1, 0.0)


def _center(history: BandHistory, hour: int, season: Season) -> float | None:
    places = places_of(history.hours, hour, season, MAX_COMPARABLE)
    return trimmed_mean([history.values[place] for place in places]) if places else None


def _limits(centers: list[float], half: float, varies: float) -> tuple[float, float]:
    """Return the limits around all centers.

    Args:
        half: half of the band, as a logarithm.
        varies: how many roots of a center its count may vary.
    """
    lows, highs, factor = [], [], exp(half)
    for center in centers:
        low, high, chance = (center + 1) / factor - 1, (center + 1) * factor - 1, varies * sqrt(max(center, 1.0))
        lows.append(center - hypot(center - low, chance))
        highs.append(center + hypot(high - center, chance) + varies**2 / 6)
    return max(min(lows), 0.0), max(highs)


def _spread_of(history: BandHistory, places: list[int], center: float) -> float:
    """Return the spread of a slot: that of all residuals, moved by those of the slot, which may be a noisier one."""
    squares = [one * one for place in places if (one := history.residuals[place]) == one]  # NaN differs from itself
    shared, count = history.spread**2, len(squares)
    if count < _MIN_OWN:
        return history.spread
    own = sum(squares) / count - history.counting / max(center, 0.5)
    if center > _LARGE:
        least, most = shared / 4, shared * 4 + 0.01
    else:
        least, most = shared, own
    return sqrt(max((_WEIGHT * shared + count * min(own, most)) / (_WEIGHT + count), least))


def _is_never_zero(history: BandHistory, places: list[int], center: float) -> bool:
    """Return whether a zero is neither among the comparable values nor explained by a negative binomial process."""
    spread = max(history.spread, 0.01) ** 2
    is_rare = log1p(spread * center) / spread > _RARE * max(history.counting, 0.5)
    return is_rare and all(history.values[place] for place in places)


def recurs(history: BandHistory, value: float, band: Band, options: BandOptions) -> bool:
    """Return whether values like this one came on three days before at its hour: then it is normal."""
    season = season_of(history, options)
    if season == "none":
        return False
    days, size = set(), log1p(value)
    for time, other, hour in zip(history.times, history.values, history.hours):
        if hour == OUT and abs(log1p(other) - size) < _ALIKE:
            slot = slot_of(time, history.phase, options.zone)
            is_same = slot.hour // 24 == band.slot.hour // 24 if season == "day_of_week" else (
                slot.hour % 24 == band.slot.hour % 24
            )  # fmt: skip
            if is_same and slot.day != band.slot.day:
                days.add(slot.day)
    return len(days) >= _RECURRING


def season_of(history: BandHistory, options: BandOptions) -> Season:
    """Return which runs are comparable within a week."""
    if options.seasonality == "auto":
        return history.season or "none"
    return "none" if options.seasonality == "day_of_month" else options.seasonality


def _gap(history: BandHistory, when: float) -> float:
    """Return the time since the last run in usual ones: a run after a skipped one may read for both."""
    if not history.every or not history.last:
        return 1.0
    gap = when - history.last
    ratio = max(gap, 0.0) / history.every
    if abs(ratio - 1) < _IRREGULAR:
        return 1.0
    times = history.times[-_GAPS:]
    alike = sum(abs(later - earlier - gap) < _IRREGULAR * gap for earlier, later in pairwise(times))
    return 1.0 if alike >= 3 else ratio


def _of_month(history: BandHistory, day: date, options: BandOptions) -> tuple[float, float, bool, bool]:
    """Return what a day of the month adds to the center, the largest peak it may have, and whether that is known."""
    if options.seasonality not in ("auto", "day_of_month"):
        return 0.0, 0.0, True, True
    is_own, ordinal = options.seasonality == "day_of_month", day.toordinal()
    if history.month[0] != ordinal:
        history.month = (ordinal, *_look_back(history, day, is_own=is_own))
    _, found, peak, count, is_certain = history.month
    return found, peak, is_certain, not is_own or count >= MIN_BUCKET


def _look_back(history: BandHistory, day: date, *, is_own: bool) -> tuple[float, float, int, bool]:
    is_certain = False
    found, peak, count, least = 0.0, 0.0, 0, max(_NOTABLE * history.day_spread, _LEAST)
    for days in same_days(day, MONTHS):
        past = [one for other in days if not isnan(one := _of_day(history, other))]
        count = max(count, len(past))
        notable = [one for one in past if abs(one) > least]
        if is_own and len(past) >= MIN_BUCKET:
            found = median(past)
        elif len(notable) >= max(MIN_BUCKET, 2 / 3 * len(past)):
            middle = median(past)
            if abs(middle) > abs(found) and all(one * middle > 0 for one in notable):
                found, is_certain = middle, len(notable) == len(past) >= 3 and day.weekday() < 5
        for other in days:
            for near in range(-_NEAR, _NEAR + 1):
                one = _of_day(history, other, near)
                if one > max(least, peak):
                    peak = one
    return found, max(found, peak), count, is_certain or is_own


def _of_day(history: BandHistory, day: date, near: int = 0) -> float:
    place = day.toordinal() + near - history.first_day
    return history.days[place] if 0 <= place < len(history.days) else nan


def learn(
    history: BandHistory, when: float, value: float, band: Band | None, options: BandOptions, *, is_anomaly: bool
) -> bool:
    """Add the value of a run that started at a time; return whether lasting anomalies have moved the history.

    Args:
        band: what was expected of it.
    """
    if not history.values:
        history.begun = when
    moved = False
    if band is not None:
        _follow_clocks(history, when, value, band, options)
    if is_anomaly:
        history.calm = 0
        history.outlier_since = history.outlier_since if history.outliers else when
        history.outliers += 1
    elif history.outliers:
        history.calm += 1
        history.normal += 1
        if history.calm >= options.min_runs:
            _forget_outliers(history)
    is_out = is_anomaly or (
        band is not None
        and band.is_known
        and (is_special(band.slot.day) or not band.plain[0] <= value <= band.plain[1])
    )
    _append(history, when, value, band, options, is_out=is_out)
    history.last = when
    lasted = when - history.outlier_since
    if is_anomaly and lasted >= options.adapt and history.outliers >= max(options.min_runs, history.normal):
        _move(history, options)
        moved = True
    return moved


def _append(
    history: BandHistory, when: float, value: float, band: Band | None, options: BandOptions, *, is_out: bool
) -> None:
    times = history.times
    if len(times) >= MAX_PER_HOUR and times[-MAX_PER_HOUR] // 3600 == int(when) // 3600:
        return
    residual, effect = nan, 0.0
    slot = slot_of(when, history.phase, options.zone) if band is None else band.slot
    if band is not None:
        effect = band.effect
        residual = log((value + 1) / (band.center + 1))
        _note_day(history, slot.day, residual + effect)
        if not is_out:
            limit = max(2 * history.spread, 0.02)
            history.drift += _FOLLOWED * min(max(residual, -limit), limit)
    times.append(int(when))
    history.values.append(max((value + 1) / exp(effect) - 1, 0.0) if effect else value)
    history.residuals.append(residual)
    history.hours.append(OUT if is_out else slot.hour)
    old = max(len(times) - MAX_VALUES, 0)
    while times[old] < when - options.training:
        old += 1
    if old:
        for part in (times, history.values, history.residuals, history.hours):
            del part[:old]
    history.learned += 1
    if history.learned >= history.choice:
        history.choice = history.learned + max(len(times) // 4, 1)
        _choose(history, options)
    if history.learned >= history.renewal:
        _renew(history)


def _follow_clocks(history: BandHistory, when: float, value: float, band: Band, options: BandOptions) -> None:
    """Move the history by an hour if the values since clocks changed fit the hours beside theirs much better."""
    season = season_of(history, options)
    if season not in _HOURS or not clocks_changed(band.slot.day, options.zone):
        history.clocks = (0.0, 0.0, 0.0)
        return
    since, *scores = history.clocks
    if since < 0:
        return  # they have been followed
    own = abs(log((value + 1) / (band.center + 1)))
    for place, step in enumerate((-1, 1)):
        other = _center(history, (band.slot.hour + step) % WEEK, season)
        if other is not None:
            far = abs(log1p(value) - log1p(other) - history.drift - band.effect)
            scores[place] = max(scores[place] + min(own, _MOST) - min(far, _MOST), 0.0)
        if scores[place] > _CONVINCED:
            for number, time in enumerate(history.times):
                if time < since:
                    history.times[number] = time - step * 3600
            _set_hours(history, options)
            history.clocks = (-1.0, 0.0, 0.0)
            return
    history.clocks = (since or when if any(scores) else 0.0, scores[0], scores[1])


def _set_hours(history: BandHistory, options: BandOptions) -> None:
    for place, time in enumerate(history.times):
        if history.hours[place] != OUT:
            history.hours[place] = slot_of(time, history.phase, options.zone).hour


def _choose(history: BandHistory, options: BandOptions) -> None:
    """Learn when the runs are scheduled, and choose the season anew."""
    times = history.times
    phase = phase_of(times, history.phase)
    if phase != history.phase:
        history.phase = phase
        _set_hours(history, options)
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
    _renew(history)
    spread = min(history.spread, _MOST_SPREAD)
    for place, one in enumerate(distances):
        center = max((history.values[place] + 1) / exp(one) - 1, 0.0)
        low, high = _limits([center], options.sensitivity * spread, options.sensitivity * sqrt(history.counting))
        if not isnan(one) and not low <= history.values[place] <= high:
            history.hours[place] = OUT


def _renew(history: BandHistory) -> None:
    """Compute the spread from the residuals, and the usual time between two runs."""
    last = (part[-MAX_RESIDUALS:] for part in (history.residuals, history.values, history.hours))
    rows = [
        _noise(value, one)
        for one, value, hour in zip(*last)
        if one == one and hour != OUT and (one or value)  # NaN differs from itself; 0 for 0 says nothing of others
    ]
    history.known = len(rows)
    if rows:
        rows.sort(key=itemgetter(1))
        large, small = rows[: len(rows) // 2 + 1], rows[len(rows) // 2 :]
        shared = max(_variance(large), 0.0)
        counting = _variance([(square / share, shared / share) for square, share in small])
        history.counting = counting = min(max(counting, 0.02), _MOST_COUNTING)
        history.spread = sqrt(max(_variance([(square, counting * share) for square, share in large]), 0.0))
    days = [abs(one) for one in history.days if one == one]
    history.day_spread = sqrt(median([one * one for one in days]) / _MEDIAN_SQUARE) if days else 0.0
    gaps = [later - earlier for earlier, later in pairwise(history.times[-_GAPS:])]
    history.every = median(gaps) if len(gaps) >= 3 else 0.0
    history.renewal = history.learned + max(history.known // RENEWED, 1)


def _variance(rows: list[tuple[float, float]]) -> float:
    """Return the larger one of two estimates of a variance, from squares and what is taken from each."""
    return max(
        sorted([square / quantile - less for square, less in rows])[len(rows) * tenths // 10]
        for quantile, tenths in ((_MEDIAN_SQUARE, 5), (_HIGH_SQUARE, 9))
    )


def _noise(value: float, residual: float) -> tuple[float, float]:
    """Return the square of a relative deviation, and the part of it that counting explains."""
    center = (value + 1) / exp(residual) - 1
    if center < 0.5:
        center, residual = 0.5, log((value + 1) / 1.5)
    if center < _SMALL and value < _SMALL:  # logarithms of small counts are far from normal, their roots are not
        return 4 * (sqrt(value + 0.375) - sqrt(center + 0.375)) ** 2 / center, 1 / center
    return residual * residual, 1 / center


def _note_day(history: BandHistory, day: date, residual: float) -> None:
    """Add a residual to its day; the median of the day before is kept when a new day begins."""
    ordinal = day.toordinal()
    if not history.first_day:
        history.first_day = ordinal
    current = history.first_day + len(history.days)
    if ordinal > current:
        history.days.append(median(history.today) if history.today else nan)
        history.days.extend([nan] * min(ordinal - current - 1, _MAX_DAYS))
        history.first_day = ordinal - len(history.days)
        old = max(len(history.days) - _MAX_DAYS, 0)
        history.first_day += old
        del history.days[:old], history.today[:]
    history.today.append(residual)


def _move(history: BandHistory, options: BandOptions) -> None:
    """Move the history to the level of the anomalies, which stay comparable from now on."""
    times, hours = history.times, history.hours
    first = next(place for place, time in enumerate(times) if time >= int(history.outlier_since))
    shifts = [one for one, hour in zip(history.residuals[first:], hours[first:]) if hour == OUT and one == one]
    shift = exp(median(shifts) + history.drift) if shifts else 1.0
    for place in range(first):
        history.values[place] = max((history.values[place] + 1) * shift - 1, 0.0)
    for place in range(first, len(times)):
        if hours[place] == OUT:
            hours[place] = slot_of(times[place], history.phase, options.zone).hour
            history.residuals[place] = nan
        else:
            hours[place] = OUT
    history.drift = 0.0
    _forget_outliers(history)


def _forget_outliers(history: BandHistory) -> None:
    history.outliers = history.calm = history.normal = 0


def trimmed_mean(values: list[float]) -> float:
    """Return the mean of the middle half of at least one value."""
    ordered = sorted(values)
    cut = len(ordered) // 4
    middle = ordered[cut : len(ordered) - cut]
    return sum(middle) / len(middle)


def median(values: Sequence[float]) -> float:
    """Return the median of at least one value."""
    ordered: list[float] = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
