"""Bands against a plain recomputation, and what they promise: growth, constants, anomalies, seasons."""

import math
import random
import statistics
from datetime import datetime, timezone
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balog.watch.arrays import encode_array
from balog.watch.bands import Band, BandHistory, BandOptions, expect, learn

HOUR, DAY = 3600.0, 86400.0
START = datetime(2026, 1, 5, tzinfo=timezone.utc).timestamp()  # a Monday


def options(**changes: Any) -> BandOptions:
    plain = BandOptions(3.5, 0.1, "none", 28 * DAY, 5, 7 * DAY, timezone.utc)
    return plain._replace(**changes)


class Oracle:
    """The same rules over plain lists, with numpy's and the standard library's medians."""

    def __init__(self, options: BandOptions) -> None:
        self.options = options
        self.entries: list[tuple[float, float, float]] = []  # time, value, residual
        self.begun = 0.0
        self.fresh = 0  # residuals since the spread was computed, and time to compute it
        self.spread = self.drift = 0.0
        self.known = 0

    @staticmethod
    def even(values: list[float]) -> list[float]:
        step = max(math.ceil(len(values) / 128), 1)
        return list(reversed(list(reversed(values))[::step]))

    def center(self, when: float) -> tuple[float, bool]:
        def hours(moment: float) -> tuple[int, int]:
            local = datetime.fromtimestamp(moment, timezone.utc)
            return local.weekday(), local.hour

        day, hour = hours(when)
        code = day * 24 + hour
        tests: list[tuple[Any, bool]] = {
            "none": [(lambda d, h: True, True)],
            "hour_of_day": [(lambda d, h: h == hour, True)],
            "day_of_week": [(lambda d, h: d == day, True)],
            "hour_of_week": [
                (lambda d, h: (d, h) == (day, hour), True),
                (lambda d, h: (d * 24 + h - code + 1) % 168 in (0, 1, 2), False),
                (lambda d, h: h == hour, False),
            ],
        }[self.options.seasonality]
        for test, is_own in tests:
            found = [value for time, value, _ in self.entries if test(*hours(time))]
            if len(found) >= 2 or self.options.seasonality == "none":
                return float(np.median(self.even(found))), is_own
        return float(np.median(self.even([value for _, value, _ in self.entries]))), False

    def expect(self, when: float) -> Band | None:
        span = {"none": 0, "hour_of_day": 1, "day_of_week": 7, "hour_of_week": 7}[self.options.seasonality] * DAY
        if len(self.entries) < self.options.min_runs or when - self.begun < span:
            return None
        center, is_own = self.center(when)
        if not is_own or self.known < self.options.min_runs - 1:
            return None
        if abs(self.drift) > self.spread / 2:
            center = (center + 1) * math.exp(self.drift) - 1
        factor = math.exp(max(self.options.sensitivity * self.spread * (1 + 5 / self.known), math.log(1.1)))
        poisson = self.options.sensitivity**2 * max(center, 1.0)
        below, above = center - ((center + 1) / factor - 1), (center + 1) * factor - 1 - center
        return Band(center, max(center - (below**2 + poisson) ** 0.5, 0.0), center + (above**2 + poisson) ** 0.5)

    def renew(self) -> None:
        residuals = [one for _, _, one in self.entries if not math.isnan(one)]
        sizes = [abs(one) for one in residuals]
        self.known, self.spread = len(residuals), 0.0
        if sizes:
            self.spread = statistics.median(sizes) / 0.6745 or statistics.fmean(sizes) * 1.253314
        self.drift = statistics.median(residuals[-24:]) if len(residuals) >= 8 else 0.0

    def learn(self, when: float, value: float) -> None:
        if not self.entries:
            self.begun = when
        same_hour = [time for time, _, _ in self.entries if time // 3600 == when // 3600]
        if len(same_hour) >= 4:
            return
        residual = math.nan
        if self.entries:
            center, is_own = self.center(when)
            residual = float(np.float32(np.log((value + 1) / (center + 1)))) if is_own else math.nan
        self.entries.append((when, value, residual))
        self.entries = [entry for entry in self.entries if entry[0] >= when - self.options.training]
        self.fresh += 1
        if self.fresh >= self.known // 16:
            self.renew()
            self.fresh = 0


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    seasonality=st.sampled_from(["none", "hour_of_day", "day_of_week", "hour_of_week"]),
    count=st.integers(1, 250),
    step=st.sampled_from([600.0, HOUR, 5 * HOUR, DAY]),
    training=st.sampled_from([3 * DAY, 28 * DAY]),
)
def test_a_band_is_what_a_plain_recomputation_gives(
    seed: int, seasonality: Any, count: int, step: float, training: float
) -> None:
    chance = random.Random(seed)
    chosen = options(seasonality=seasonality, training=training)
    history, oracle = BandHistory(), Oracle(chosen)
    when = START + chance.randrange(10**6)
    for _ in range(count):
        when = float(int(when + step * chance.uniform(0.5, 1.5)))
        value = float(round(chance.lognormvariate(5, 1)) if chance.random() < 0.8 else 0)
        ours, theirs = expect(history, when, chosen), oracle.expect(when)
        assert (ours is None) == (theirs is None)
        if ours is not None and theirs is not None:
            assert ours == pytest.approx(theirs, rel=1e-6, abs=1e-9)
        learn(history, when, value, chosen, is_anomaly=False)
        oracle.learn(when, value)


def run(values: list[float], chosen: BandOptions, step: float = HOUR) -> list[bool]:
    """Return which values of a series are anomalies; they are not learned."""
    history, found = BandHistory(), []
    for number, value in enumerate(values):
        when = START + number * step
        band = expect(history, when, chosen)
        is_anomaly = band is not None and not band.low <= value <= band.high
        found.append(is_anomaly)
        learn(history, when, value, chosen, is_anomaly=is_anomaly)
    return found


def test_a_constant_series_is_not_alarmed_by_little_and_is_by_much() -> None:
    found = run([1000.0] * 50 + [1050.0, 1500.0, 500.0, 1000.0], options())
    assert found[-4:] == [False, True, True, False]
    assert not any(found[:50])


def test_steady_growth_does_not_alarm() -> None:
    chance = random.Random(1)
    values = [1000 * 1.02**day * chance.gauss(1, 0.03) for day in range(180)]
    assert sum(run(values, options(), DAY)) <= 4


def test_a_season_is_learned_and_half_of_it_is_an_anomaly() -> None:
    chance = random.Random(2)
    daily = [100 + 900 * math.sin(math.pi * hour / 24) for hour in range(24)]
    values = [daily[hour % 24] * chance.gauss(1, 0.05) for hour in range(24 * 28)]
    values += [daily[0] / 2, daily[12] / 2, daily[12]]
    history, chosen = BandHistory(), options(seasonality="hour_of_day")
    alarms = sum(run(values[: 24 * 28], chosen))
    assert alarms <= 10
    for hour in range(24 * 28):
        learn(history, START + hour * HOUR, values[hour], chosen, is_anomaly=False)
    midnight, noon = START + 24 * 28 * HOUR, START + (24 * 28 + 12) * HOUR
    low, high = expect(history, midnight, chosen), expect(history, noon, chosen)
    assert low is not None
    assert high is not None
    assert low.high < 300 < 700 < high.low


def test_an_anomaly_is_not_the_norm_at_once_and_a_lasting_level_is_after_a_time() -> None:
    found = run([1000.0] * 200 + [3000.0] * 300, options(adapt=3 * DAY))
    assert all(found[200 : 200 + 72])
    assert not any(found[200 + 73 :])


def test_after_an_anomaly_only_a_value_well_within_the_band_is_normal() -> None:
    history, chosen = BandHistory(), options(sensitivity=4.0)
    chance = random.Random(7)
    for number in range(100):
        learn(history, START + number * HOUR, 10_000 * chance.gauss(1, 0.1), chosen, is_anomaly=False)
    band = expect(history, START + 100 * HOUR, chosen)
    assert band is not None

    learn(history, START + 100 * HOUR, band.low / 2, chosen, is_anomaly=True)
    after = expect(history, START + 101 * HOUR, chosen)
    assert after is not None
    assert band.low < after.low < after.center < after.high < band.high
    assert math.log((after.high + 1) / (after.center + 1)) == pytest.approx(
        0.75 * math.log((band.high + 1) / (band.center + 1)), rel=0.02
    )

    learn(history, START + 101 * HOUR, after.center, chosen, is_anomaly=False)
    assert expect(history, START + 102 * HOUR, chosen) == pytest.approx(band, rel=0.01)


def test_small_counts_vary_more_than_the_spread_of_large_ones() -> None:
    chance, chosen = random.Random(8), options(seasonality="hour_of_day")
    values = []
    for number in range(24 * 60):
        mean = 40 if number % 24 < 12 else 40_000  # the noise is 5 % and that of counting
        values.append(round(chance.gauss(mean * chance.gauss(1, 0.05), math.sqrt(mean))))
    found = run([max(value, 0) for value in values], chosen)
    assert sum(found) <= 4


def test_a_series_that_returns_is_not_surprised_by_its_old_level() -> None:
    found = run([1000.0] * 100 + [0.0] * 48 + [1000.0] * 20, options())
    assert all(found[100:148])
    assert not any(found[148:])


def test_quiet_weekends_of_daily_runs_are_learned() -> None:
    chance = random.Random(5)
    values = [(400 if day % 7 >= 5 else 1000) * chance.gauss(1, 0.05) for day in range(140)]
    found = run(values, options(seasonality="day_of_week"), DAY)
    assert sum(found) <= 3
    assert run([*values, 400.0, 1000.0], options(seasonality="day_of_week"), DAY)[-2:] == [True, False]


def test_a_season_in_local_time_moves_with_the_clock() -> None:
    from zoneinfo import ZoneInfo

    berlin = ZoneInfo("Europe/Berlin")
    begin = datetime(2026, 3, 9, tzinfo=berlin).timestamp()
    chosen = options(seasonality="hour_of_week", zone=berlin)
    history, found = BandHistory(), []
    for number in range(24 * 35):  # over the night of 2026-03-29, when clocks skip an hour
        when = begin + number * HOUR
        hour = datetime.fromtimestamp(when, berlin).hour
        value = 5000.0 if 9 <= hour < 17 else 50.0
        band = expect(history, when, chosen)
        is_anomaly = band is not None and not band.low <= value <= band.high
        found.append(is_anomaly)
        learn(history, when, value, chosen, is_anomaly=is_anomaly)
    assert not any(found)


def test_a_history_is_small_and_bounded() -> None:
    history, chosen = BandHistory(), options()
    for minute in range(0, 28 * 1440, 5):
        learn(history, START + minute * 60, float(minute), chosen, is_anomaly=False)
    assert len(history.values) <= 4 * 24 * 28 + 4
    hourly = BandHistory()
    for hour in range(24 * 60):
        learn(hourly, START + hour * HOUR, 1.0, chosen, is_anomaly=False)
    assert len(msgspec.msgpack.encode(hourly, enc_hook=encode_array)) < 15_000
