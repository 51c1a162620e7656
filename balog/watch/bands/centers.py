"""The center of a series: the mean of its last comparable values, without the largest and smallest ones."""

from __future__ import annotations

from functools import lru_cache

from balog.watch.bands.band_history import BandHistory
from balog.watch.bands.slots import WEEK, bucket_of
from balog.watch.config.kind_config import Season

MAX_COMPARABLE = 16
"""Values that a center is made of: the last ones of its slot."""


def places_of(history: BandHistory, hour: int, season: Season) -> list[int]:
    """Return the places of the last values that are comparable with those of an hour of the week, the newest first."""
    hours = history.hours
    mask, mark = (hours, hour) if season == "hour_of_week" else (hours.translate(_table(season, hour)), 1)
    places: list[int] = []
    index = len(mask)
    for _ in range(MAX_COMPARABLE):
        index = mask.rfind(mark, 0, index)
        if index < 0:
            break
        places.append(index)
    return places


@lru_cache(maxsize=1024)
def _table(season: Season, hour: int) -> bytes:
    """Return a table for ``bytes.translate`` that marks the comparable hours of the week."""
    bucket = bucket_of(season, hour)
    return bytes(code < WEEK and bucket_of(season, code) == bucket for code in range(256))


def center_of(history: BandHistory, hour: int, season: Season) -> float | None:
    """Return the center of an hour of the week; None without a comparable value."""
    places = places_of(history, hour, season)
    return trimmed_mean([history.values[index] for index in places]) if places else None


def trimmed_mean(values: list[float]) -> float:
    """Return the mean of the middle half of at least one value."""
    ordered = sorted(values)
    cut = len(ordered) // 4
    middle = ordered[cut : len(ordered) - cut]
    return sum(middle) / len(middle)
