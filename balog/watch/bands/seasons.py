"""The season of a series: which of the seasons within a week fits its history best.

A season is chosen by cross-validation: each value is compared with the median of the other values of its slot, and the
season with the smallest mean distance wins. A simpler season is kept unless a finer one is clearly better.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import isnan, log, nan

from balog.watch.bands.slots import bucket_of
from balog.watch.config.monitors import Season

SEASONS: tuple[Season, ...] = ("none", "hour_of_day", "day_of_week", "hour_of_week")
"""The seasons within a week, the simplest first."""

HOURLY = ("hour_of_day", "hour_of_week")
"""The seasons in which an hour more or less matters."""

SEASON_SPAN = {"none": 0.0, "hour_of_day": 86400.0, "day_of_week": 7 * 86400.0, "hour_of_week": 7 * 86400.0,
               "auto": 0.0, "day_of_month": 0.0}  # fmt: skip

MIN_BUCKET = 2
"""Comparable values that a slot needs."""

_COVERED = 0.8
_BETTER = 0.96
_FAR = 1.5
"""Distances beyond this one, a factor of 4.5, count alike."""


def choose_season(values: Sequence[float], hours: Sequence[int], span: float) -> tuple[Season, list[float]]:
    """Return the season that fits values best, and how far each value is from the others of its slot, in logarithms.

    Args:
        hours: the hour of the week of each value.
        span: seconds from the first to the last value. A season needs two of its cycles.
    """
    logs = [log(value + 1) for value in values]
    tried = {
        season: _distances(logs, [bucket_of(season, hour) for hour in hours])
        for season in SEASONS
        if season == "none" or span >= 2 * SEASON_SPAN[season] * 0.97
    }
    enough = _COVERED * len(logs)
    covered = {name: column for name, column in tried.items() if len(column) - sum(map(isnan, column)) >= enough}
    tried = covered or {"none": tried["none"]}
    rows = [row for row in zip(*tried.values()) if not isnan(sum(row))]
    means = [sum([min(abs(offset), _FAR) for offset in column]) / max(len(rows), 1) for column in zip(*rows)] or [0.0]
    best, least = 0, means[0]
    for number, mean in enumerate(means):
        if mean < least * _BETTER:
            best, least = number, mean
    season = list(tried)[best]
    return season, tried[season]


def _distances(logs: Sequence[float], buckets: Sequence[int]) -> list[float]:
    """Return the distance of each value from the median of the others in its bucket; NaN if there are too few."""
    members: defaultdict[int, list[int]] = defaultdict(list)
    for index, bucket in enumerate(buckets):
        members[bucket].append(index)
    distances = [nan] * len(logs)
    for places in members.values():
        count = len(places)
        if count < MIN_BUCKET:
            continue
        ordered = sorted([(logs[index], index) for index in places])
        middle = (count - 1) // 2
        (here, _), (above, _) = ordered[middle], ordered[middle + 1]
        medians = [above, above, here]  # of the others: for those before the middle, at it, and after it
        if count % 2:
            below = ordered[middle - 1][0]
            medians = [(here + above) / 2, (below + above) / 2, (below + here) / 2]
        for rank, (value, index) in enumerate(ordered):
            distances[index] = value - medians[0 if rank < middle else 1 if rank == middle else 2]
    return distances
