"""Bands against a plain recomputation from docs/explanation/bands.md, which shares no code with them.

The oracle keeps lists and computes everything anew for each run. Its runs lie between May and September: no holidays,
and no change of clocks.
"""

import math
import random
import struct
from collections import defaultdict
from datetime import date, datetime, timedelta, timezone
from itertools import pairwise
from statistics import fmean, median
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.watch.bands.band_history import BandHistory, BandOptions
from balog.watch.bands.bands import expect
from tests.oracles.effort import examples

HOUR, DAY = 3600.0, 86400.0
START = datetime(2026, 5, 4, tzinfo=timezone.utc).timestamp()  # a Monday
CYCLES = {"none": 0.0, "hour_of_day": DAY, "day_of_week": 7 * DAY, "hour_of_week": 7 * DAY}


def rounded(number: float) -> float:
    """Return a number as four bytes hold it."""
    return float(struct.unpack("f", struct.pack("f", number))[0])


def slot(season: str, when: float) -> Any:
    local = datetime.fromtimestamp(when, timezone.utc)
    return {
        "none": 0,
        "hour_of_day": local.hour,
        "day_of_week": local.weekday(),
        "hour_of_week": (local.weekday(), local.hour),
    }[season]


def larger_variance(rows: list[tuple[float, float]]) -> float:
    halves = sorted(square / 0.4549 - less for square, less in rows)
    tails = sorted(square / 2.7055 - less for square, less in rows)
    return max(halves[len(rows) * 5 // 10], tails[len(rows) * 9 // 10])


class PlainSeries:
    """A series as the page defines it."""

    def __init__(self, options: BandOptions) -> None:
        self.options = options
        self.rows: list[dict[str, Any]] = []  # time, value, residual or None, is_out
        self.days: dict[date, list[float]] = defaultdict(list)
        self.season: str = "none" if options.seasonality == "auto" else options.seasonality
        self.has_chosen = False
        self.drift = self.spread = self.day_spread = self.every = 0.0
        self.counting = 1.0
        self.known = self.learned = self.next_spread = self.next_choice = 0
        self.anomalies: list[float] = []
        self.missing: list[float] = []  # of the last values, each less than the band
        self.calm = self.normal = 0
        self.effects: dict[date, tuple[float, float]] = {}

    def comparable(self, when: float) -> list[dict[str, Any]]:
        mine = slot(self.season, when)
        return [row for row in self.rows if not row["is_out"] and slot(self.season, row["time"]) == mine][-16:]

    def of_month(self, today: date) -> tuple[float, float]:
        """Return what a day of the month adds, and the largest peak that it may have."""
        if self.options.seasonality != "auto":
            return 0.0, 0.0
        known = {day: rounded(median(found)) for day, found in self.days.items() if day < max(self.days)}
        least = max(3 * self.day_spread, math.log(1.12))
        ends = [today.replace(day=1) - timedelta(days=1)]
        while len(ends) < 12:
            ends.append(ends[-1].replace(day=1) - timedelta(days=1))
        groups = [[end.replace(day=today.day) for end in ends if end.day >= today.day]]
        left = ((today.replace(day=1) + timedelta(days=31)).replace(day=1) - today).days - 1
        if left < 3:
            groups.append([end - timedelta(days=left) for end in ends])
        effect = peak = 0.0
        for group in groups:
            past = [known[day] for day in group if day in known]
            notable = [one for one in past if abs(one) > least]
            if len(notable) >= 2 and len(notable) >= 2 / 3 * len(past):
                same_side = all(one > 0 for one in notable) if median(past) > 0 else all(one < 0 for one in notable)
                if same_side and abs(median(past)) > abs(effect):
                    effect = median(past)
            peaks = []
            for day in group:
                near = [day + timedelta(days=step) for step in range(-2, 3)]
                if known and any(min(known) <= one < max(self.days) for one in near):
                    peaks.append(max(known.get(one, 0.0) for one in near))
            peaks = sorted(one if one > least else 0.0 for one in peaks)
            peak = max([peak, *(peaks[:-1] if len(peaks) > 2 else peaks)])
        return effect, max(effect, peak)

    def limits(self, center: float, half: float, sensitivity: float) -> tuple[float, float]:
        chance = sensitivity * math.sqrt(self.counting) * math.sqrt(max(center, 1.0))
        below = center - ((center + 1) / math.exp(half) - 1)
        above = (center + 1) * math.exp(half) - 1 - center
        low, high = center - math.sqrt(below**2 + chance**2), center + math.sqrt(above**2 + chance**2)
        return max(low, 0.0), high + sensitivity**2 * self.counting / 6

    def spread_of_slot(self, rows: list[dict[str, Any]], center: float) -> float:
        squares = [row["residual"] ** 2 for row in rows if row["residual"] is not None]
        if len(squares) < 4:
            return self.spread
        shared, own = self.spread**2, fmean(squares) - self.counting / max(center, 0.5)
        most, least = (4 * shared + 0.01, shared / 4) if center > 100 else (own, shared)
        mixed = (8 * shared + len(squares) * min(own, most)) / (8 + len(squares))
        return math.sqrt(max(mixed, least))

    def gap(self, when: float) -> float:
        times = [int(row["time"]) for row in self.rows]
        if not self.every:
            return 1.0
        gap = when - self.last
        if abs(gap / self.every - 1) < 0.15:
            return 1.0
        gaps = [later - before for before, later in zip(times[-24:], times[-23:])]
        return 1.0 if sum(abs(one - gap) < 0.15 * gap for one in gaps) >= 3 else gap / self.every

    def expect(self, when: float) -> dict[str, Any] | None:
        rows = self.comparable(when)
        if not rows:
            return None
        day = datetime.fromtimestamp(when, timezone.utc).date()
        effect, peak = self.effects.setdefault(day, self.of_month(day))
        usual = math.log(self.middle_half([row["value"] for row in rows]) + 1) + self.drift
        center = max(math.exp(usual + effect) - 1, 0.0)
        sensitivity = self.options.sensitivity * (0.75 if self.anomalies and not self.calm else 1)
        half = sensitivity * min(self.spread_of_slot(rows, center), 3.0) * (1 + 5 / max(self.known, 1))
        half = max(half, math.log(1 + self.options.tolerance))
        centers = [center, max(math.exp(usual + peak) - 1, 0.0)] if peak > effect else [center]
        if effect > 0:
            centers.append(max(math.exp(usual) - 1, 0.0))
        bands = [self.limits(one, half, sensitivity) for one in centers]
        low, high = min(one[0] for one in bands), max(one[1] for one in bands)
        plain = low, high
        ratio = self.gap(when)
        if ratio != 1.0 and self.season in ("hour_of_day", "hour_of_week"):
            for step in (-HOUR, HOUR):
                beside = self.comparable(when + step)
                if beside:
                    other = math.log(self.middle_half([row["value"] for row in beside]) + 1) + self.drift
                    reached = self.limits(max(math.exp(other) - 1, 0.0), half, sensitivity)
                    low, high = min(low, reached[0]), max(high, reached[1])
        if self.missing:
            high = max(high, self.limits(center + sum(self.missing), half, sensitivity)[1])
        age = when - self.begun
        if self.options.seasonality == "auto" and age < 14 * DAY:
            seen = [row["value"] for row in self.rows]
            low, high = min([low, *seen]), max([high, *seen])
        is_known = len(self.rows) >= self.options.min_runs and self.known >= self.options.min_runs - 1
        is_known = is_known and (self.season == "none" or len(rows) >= 2) and age >= CYCLES[self.season]
        low, high = low * min(ratio, 1.0), high * max(ratio, 1.0)
        return {"center": center, "low": low, "high": high, "is_known": is_known, "effect": effect, "plain": plain}

    @staticmethod
    def middle_half(values: list[float]) -> float:
        cut = len(values) // 4
        return fmean(sorted(values)[cut : len(values) - cut])

    def learn(self, when: float, value: float, band: dict[str, Any] | None, is_anomaly: bool) -> None:
        if not self.rows:
            self.begun = when
        if is_anomaly:
            self.anomalies.append(when)
            self.calm = 0
        elif self.anomalies:
            self.calm, self.normal = self.calm + 1, self.normal + 1
            if self.calm >= self.options.min_runs:
                self.anomalies, self.calm, self.normal = [], 0, 0
        residual, is_out, effect = None, False, 0.0
        if band is not None:
            effect = band["effect"]
            residual = math.log((value + 1) / (band["center"] + 1))
            is_out = is_anomaly or (band["is_known"] and not band["plain"][0] <= value <= band["plain"][1])
            self.days[datetime.fromtimestamp(when, timezone.utc).date()].append(rounded(residual + effect))
            is_low = value < band["plain"][0]
            self.missing = [*self.missing, band["center"] - value] if is_low else []
            if not is_out and self.effects[datetime.fromtimestamp(when, timezone.utc).date()] == (0.0, 0.0):
                limit = max(2 * self.spread, 0.02)
                self.drift += min(max(residual, -limit), limit) / 12
            residual = rounded(residual)
        kept = max((value + 1) / math.exp(effect) - 1, 0.0) if effect else value
        self.rows.append({"time": when, "value": rounded(kept), "residual": residual, "is_out": is_out})
        self.rows = [row for row in self.rows if int(row["time"]) >= when - self.options.training][-1008:]
        self.learned, self.last = self.learned + 1, when
        if self.learned >= self.next_choice:
            self.next_choice = self.learned + max(len(self.rows) // 2, 1)
            if self.options.seasonality == "auto":
                self.choose()
        if self.learned >= self.next_spread:
            self.compute_spread()
        lasted = is_anomaly and when - self.anomalies[0] >= self.options.adapt
        if lasted and len(self.anomalies) >= max(self.options.min_runs, self.normal):
            self.move()

    def choose(self) -> None:
        span = int(self.rows[-1]["time"]) - int(self.rows[0]["time"])
        logs = [math.log(row["value"] + 1) for row in self.rows]
        tried: dict[str, list[float | None]] = {}
        for season, cycle in CYCLES.items():
            if season == "none" or span >= 2 * cycle * 0.97:
                members = defaultdict(list)
                for place, row in enumerate(self.rows):
                    members[slot(season, row["time"])].append(place)
                others = {
                    place: [one for one in places if one != place] for places in members.values() for place in places
                }
                tried[season] = [
                    one - median(logs[other] for other in others[place]) if others[place] else None
                    for place, one in enumerate(logs)
                ]
        covered = {name: one for name, one in tried.items() if len(one) - one.count(None) >= 0.8 * len(logs)}
        tried = covered or {"none": tried["none"]}
        rows = [row for row in zip(*tried.values()) if None not in row]
        means = {
            name: sum(min(abs(row[place] or 0.0), 1.5) for row in rows) / max(len(rows), 1)
            for place, name in enumerate(tried)
        }
        best = next(iter(means))
        for name, mean in means.items():
            if mean < means[best] * 0.96:
                best = name
        if best == self.season and self.has_chosen:
            return
        self.season, self.has_chosen, self.drift = best, True, 0.0
        for row, distance in zip(self.rows, tried[best]):
            row["residual"], row["is_out"] = None if distance is None else rounded(distance), False
        self.compute_spread()
        for row, distance in zip(self.rows, tried[best]):
            if distance is not None:
                center = max((row["value"] + 1) / math.exp(distance) - 1, 0.0)
                half = self.options.sensitivity * min(self.spread, 3.0)
                low, high = self.limits(center, half, self.options.sensitivity)
                row["is_out"] = not low <= row["value"] <= high

    def compute_spread(self) -> None:
        rows = []
        for row in self.rows[-512:]:
            value, residual = row["value"], row["residual"]
            if residual is None or row["is_out"] or (residual > -1e-6 and value == 0):
                continue
            center = (value + 1) / math.exp(residual) - 1
            if center < 0.5:
                center, residual = 0.5, math.log((value + 1) / 1.5)
            square = residual**2
            if center < 20 and value < 20:
                square = 4 * (math.sqrt(value + 0.375) - math.sqrt(center + 0.375)) ** 2 / center
            rows.append((square, 1 / center))
        self.known = len(rows)
        if rows:
            rows.sort(key=lambda row: row[1])
            large, small = rows[: len(rows) // 2 + 1], rows[len(rows) // 2 :]
            shared = max(larger_variance(large), 0.0)
            counting = larger_variance([(square / less, shared / less) for square, less in small])
            self.counting = min(max(counting, 0.02), 30.0)
            self.spread = math.sqrt(max(larger_variance([(a, self.counting * b) for a, b in large]), 0.0))
        ended = [rounded(median(found)) for day, found in self.days.items() if day < max(self.days)]
        self.day_spread = math.sqrt(median([one**2 for one in ended]) / 0.4549) if ended else 0.0
        times = [int(row["time"]) for row in self.rows][-24:]
        gaps = [later - before for before, later in pairwise(times)]
        self.every = median(gaps) if len(gaps) >= 3 else 0.0
        self.next_spread = self.learned + max(self.known // 4, 1)

    def move(self) -> None:
        before = [row for row in self.rows if int(row["time"]) < int(self.anomalies[0])]
        after = self.rows[len(before) :]
        shifts = [row["residual"] for row in after if row["is_out"] and row["residual"] is not None]
        factor = math.exp(median(shifts) + self.drift) if shifts else 1.0
        for row in before:
            row["value"] = rounded(max((row["value"] + 1) * factor - 1, 0.0))
        for row in after:
            row["residual"] = None if row["is_out"] else row["residual"]
            row["is_out"] = not row["is_out"]
        self.drift, self.anomalies, self.calm, self.normal = 0.0, [], 0, 0


@examples(12)
@given(
    seed=st.integers(0, 10**9),
    seasonality=st.sampled_from(["auto", "auto", "none", "hour_of_day", "day_of_week", "hour_of_week"]),
    step=st.sampled_from([1, 1, 6, 24]),
    mean=st.sampled_from([0.5, 8.0, 300.0, 1e6]),
    sensitivity=st.sampled_from([2.0, 4.0]),
)
def test_a_band_is_that_of_its_definition(
    seed: int, seasonality: Any, step: int, mean: float, sensitivity: float
) -> None:
    chance = random.Random(seed)
    options = BandOptions(sensitivity, 0.35, seasonality, timezone.utc, adapt=3 * DAY)
    history, plain = BandHistory(), PlainSeries(options)
    noise, weekend, night = chance.choice([0.0, 0.05, 0.5]), chance.choice([1.0, 0.3]), chance.choice([1.0, 0.2, 4.0])
    level, month_end = 1.0, chance.choice([1.0, 1.0, 6.0])
    offset = chance.randrange(0, 2400)
    for number in range(min(420, 135 * 24 // step)):
        when = START + number * step * HOUR + offset
        local = datetime.fromtimestamp(when, timezone.utc)
        if chance.random() < 0.04:
            continue
        level *= chance.choice([0.1, 8.0]) if chance.random() < 0.004 else 1
        value = mean * level * math.exp(chance.gauss(0, noise))
        value *= (weekend if local.weekday() > 4 else 1) * (night if local.hour < 7 else 1)
        value *= month_end if (local + timedelta(days=1)).day == 1 else 1
        value *= chance.choice([0, 0.3, 5]) if chance.random() < 0.02 else 1
        value = float(round(value))
        band, expected = expect(history, when, options), plain.expect(when)
        assert (band is None) == (expected is None)
        is_anomaly = False
        if band is not None and expected is not None:
            assert band.center == pytest.approx(expected["center"], rel=1e-4, abs=1e-3)
            assert (band.low, band.high) == pytest.approx((expected["low"], expected["high"]), rel=1e-4, abs=1e-3)
            assert band.is_known == expected["is_known"]
            is_anomaly = band.is_known and not band.low <= value <= band.high
        history.learn(when, value, band, options, is_anomaly=is_anomaly)
        plain.learn(when, value, expected, is_anomaly)
    assert (history.season or "none") == plain.season or seasonality != "auto"
