"""Bands and seasons: the choice against a plain recomputation, and what they promise."""

import math
import random
from datetime import date, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balog.watch.bands.arrays import decode_array, encode_array
from balog.watch.bands.band_history import Band, BandHistory, BandOptions
from balog.watch.bands.bands import expect, recurs
from balog.watch.bands.slots import name_of, phase_of, slot_of
from balog.watch.bands.special_days import is_holiday, same_days

HOUR, DAY = 3600.0, 86400.0
START = datetime(2026, 1, 5, tzinfo=timezone.utc).timestamp()  # a Monday


def options(**changes: Any) -> BandOptions:
    plain = BandOptions(4.0, 0.35, "auto", timezone.utc)
    return plain._replace(**changes)


def take(history: BandHistory, when: float, value: float, chosen: BandOptions) -> Band | None:
    """Judge a value as a monitor does and learn it; return its band if it is an anomaly."""
    band = expect(history, when, chosen)
    is_anomaly = band is not None and band.is_known and not band.low <= value <= band.high
    history.learn(when, value, band, chosen, is_anomaly=is_anomaly)
    return band if is_anomaly else None


def run(values: list[float], chosen: BandOptions, step: float = HOUR, history: BandHistory | None = None) -> list[bool]:
    """Return which values of a series are anomalies."""
    kept = BandHistory() if history is None else history
    return [take(kept, START + number * step, value, chosen) is not None for number, value in enumerate(values)]


def series(days: int, season: str, seed: int, noise: float = 0.08) -> list[float]:
    """Return hourly values with a season."""
    chance, made = random.Random(seed), []
    for hour in range(days * 24):
        mean = 2000.0
        if season in ("hour_of_day", "hour_of_week"):
            mean *= 1 + 0.8 * math.sin(hour % 24 / 24 * 2 * math.pi)
        if season in ("day_of_week", "hour_of_week") and hour // 24 % 7 >= 5:
            mean *= 0.3
        made.append(float(round(mean * math.exp(chance.gauss(0, noise)))))
    return made


@pytest.mark.parametrize("season", ["none", "hour_of_day", "day_of_week", "hour_of_week"])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_series_chooses_its_season_from_its_history(season: str, seed: int) -> None:
    history = BandHistory()
    found = run(series(35, season, seed), options(), history=history)
    assert history.season == season
    assert sum(found[21 * 24 :]) <= 2


def test_a_season_that_comes_later_is_chosen_later() -> None:
    history = BandHistory()
    run(series(28, "hour_of_day", 3) + series(42, "hour_of_week", 4), options(), history=history)
    assert history.season == "hour_of_week"


def test_a_chosen_season_finds_half_of_an_hour() -> None:
    values = series(42, "hour_of_week", 5)
    quiet = run([*values, values[-168]], options())
    half = run([*values, values[-168] / 2], options())
    assert (quiet[-1], half[-1]) == (False, True)


def month_ends(days: int, seed: int) -> list[float]:
    """Return daily values that are five times as large on the last day of a month."""
    chance, made = random.Random(seed), []
    for number in range(days):
        day = date(2026, 1, 5) + timedelta(days=number)
        is_last = (day + timedelta(days=1)).day == 1
        made.append(float(round(1000 * (5 if is_last else 1) * math.exp(chance.gauss(0, 0.05)))))
    return made


def test_the_last_day_of_a_month_is_expected_whatever_its_number() -> None:
    history = BandHistory()
    found = run(month_ends(360, 1), options(), DAY, history)
    assert [number for number, one in enumerate(found) if one] == [26]  # the first one, of January
    band = expect(history, datetime(2026, 12, 31, 6, tzinfo=timezone.utc).timestamp(), options())
    assert band is not None
    assert band.high > 5000
    assert name_of("none", band.slot, is_of_month=bool(band.effect)) == "the last day of the month"


def test_day_of_month_learns_each_day_of_the_month() -> None:
    chosen = options(seasonality="day_of_month")
    values = [float(1000 + 200 * ((date(2026, 1, 5) + timedelta(days=number)).day % 7)) for number in range(120)]
    assert not any(run(values, chosen, DAY))
    assert run([*values, values[-1] / 3], chosen, DAY)[-1]


def test_starts_that_jitter_around_an_hour_belong_to_it() -> None:
    def slot(text: str, phase: float = -1.0) -> tuple[int, date]:
        return tuple(slot_of(datetime.fromisoformat(text).timestamp(), phase, timezone.utc))  # type: ignore[return-value]

    assert slot("2026-01-05T17:59:22+00:00") == slot("2026-01-05T18:00:31+00:00") == (18, date(2026, 1, 5))
    assert slot("2026-01-04T23:59:30+00:00") == (0, date(2026, 1, 5))
    assert slot("2026-01-05T18:20:00+00:00", 0.0) == (18, date(2026, 1, 5))
    half = phase_of([int(START + hour * 3600 + 1800 + hour * 37 % 90 - 40) for hour in range(20)], -1.0)
    assert slot("2026-01-05T17:29:22+00:00", half) == slot("2026-01-05T17:31:40+00:00", half) == (17, date(2026, 1, 5))
    assert phase_of([int(START + quarter * 900) for quarter in range(20)], -1.0) == -1.0


def test_jitter_changes_no_verdict_of_a_steep_season() -> None:
    chance, history = random.Random(9), BandHistory()
    alarms = 0
    for hour in range(24 * 42):
        value = 10_000.0 if hour % 24 < 8 else 300.0
        when = START + hour * HOUR + chance.uniform(-40, 120)
        alarms += take(history, when, value, options()) is not None and hour > 48  # a day without a day before it
    assert history.season == "hour_of_day"
    assert alarms == 0


def test_a_run_after_a_skipped_one_may_have_the_rows_of_both() -> None:
    chance, history = random.Random(3), BandHistory()
    for hour in range(24 * 30):
        take(history, START + hour * HOUR, round(1000 * chance.gauss(1, 0.05)), options())
    when = START + (24 * 30 + 1) * HOUR
    late, on_time = expect(history, when, options()), expect(history, when - HOUR, options())
    assert late is not None
    assert on_time is not None
    assert on_time.high < 2000 < late.high
    assert late.low == on_time.low


def test_rows_that_come_a_run_later_are_no_second_anomaly() -> None:
    values = [10_000.0 if number % 24 == 6 else 0.0 for number in range(24 * 30)]
    late = {24 * day + 6 for day in (20, 26)}
    for place in late:
        values[place : place + 2] = [0.0, 10_000.0]
    history = BandHistory()
    found = run(values, options(), HOUR, history)
    assert {number for number in range(24 * 15, 24 * 30) if found[number]} == late
    band = expect(history, START + (24 * 30 + 6) * HOUR, options())
    assert band is not None
    assert recurs(history, 0.0, band, options())
    assert run([*values, *[0.0] * 7, 10_000.0], options())[-1] is False
    assert run([*values, *[0.0] * 6, 10_000.0, 10_000.0], options())[-1] is True  # nothing was missing


def test_the_clocks_of_people_move_the_hours_of_a_monitor_in_utc() -> None:
    berlin, history, found = ZoneInfo("Europe/Berlin"), BandHistory(), []
    begin = datetime(2026, 2, 9, tzinfo=timezone.utc).timestamp()
    for number in range(24 * 75):
        when = begin + number * HOUR
        local = datetime.fromtimestamp(when, berlin)
        if take(history, when, 5000.0 if 9 <= local.hour < 17 else 50.0, options()) is not None and number > 48:
            found.append(local)
    assert found == []


def test_holidays_and_month_days() -> None:
    assert all(
        is_holiday(date(2026, *day)) for day in ((1, 1), (1, 3), (4, 3), (4, 6), (5, 1), (11, 27), (12, 25), (12, 28))
    )
    assert not any(is_holiday(date(2026, *day)) for day in ((2, 2), (6, 17), (9, 9)))
    assert [[date.fromordinal(one) for one in days] for days in same_days(date(2026, 3, 31), 3)] == [
        [date(2026, 1, 31), date(2025, 12, 31)],
        [date(2026, 2, 28), date(2026, 1, 31), date(2025, 12, 31)],
    ]


@pytest.mark.parametrize(
    ("season", "is_of_month", "name"),
    [
        ("none", False, ""),
        ("hour_of_day", False, "18:00"),
        ("day_of_week", False, "Fridays"),
        ("hour_of_week", False, "Fridays at 18:00"),
        ("none", True, "the 2nd of the month"),
        ("hour_of_week", True, "Fridays, the 2nd of the month at 18:00"),
    ],
)
def test_a_slot_has_a_name_in_plain_words(season: Any, is_of_month: bool, name: str) -> None:
    slot = slot_of(datetime(2026, 1, 2, 18, tzinfo=timezone.utc).timestamp(), 0.0, timezone.utc)
    assert name_of(season, slot, is_of_month=is_of_month) == name


def test_a_stored_history_goes_on_as_if_it_had_never_been_stored() -> None:
    values = [*series(40, "hour_of_week", 6), 100.0, 5.0]
    whole, parted = BandHistory(), BandHistory()
    for number, value in enumerate(values):
        if number % 100 == 0:
            data = msgspec.msgpack.encode(parted, enc_hook=encode_array)
            parted = msgspec.convert(msgspec.msgpack.decode(data), BandHistory, dec_hook=decode_array)
        when = START + number * HOUR
        assert expect(whole, when, options()) == expect(parted, when, options())
        take(whole, when, value, options())
        take(parted, when, value, options())


@settings(max_examples=30, deadline=None)
@given(
    rows=st.lists(
        st.tuples(st.floats(0, 40 * DAY), st.integers(0, 2**62) | st.sampled_from([0, 0, 1, 5])), max_size=60
    ),
    seasonality=st.sampled_from(["auto", "none", "hour_of_day", "day_of_week", "hour_of_week", "day_of_month"]),
)
def test_any_values_at_any_times_give_finite_bands(rows: list[tuple[float, int]], seasonality: Any) -> None:
    chosen, history, when = options(seasonality=seasonality), BandHistory(), START
    for gap, value in rows:
        when = min(when + gap, 4_102_444_800.0)
        band = expect(history, when, chosen)
        assert band is None or 0 <= band.low <= band.high < math.inf
        take(history, when, float(value), chosen)


def test_a_constant_series_is_not_alarmed_by_little_and_is_by_much() -> None:
    found = run([1000.0] * 50 + [1050.0, 1500.0, 500.0, 1000.0], options(seasonality="none"))
    assert found[-4:] == [False, True, True, False]
    assert not any(found[:50])


def test_steady_growth_does_not_alarm() -> None:
    chance = random.Random(1)
    values = [1000 * 1.02**day * chance.gauss(1, 0.03) for day in range(180)]
    assert sum(run(values, options(), DAY)) <= 4


def test_an_anomaly_is_not_the_norm_at_once_and_a_lasting_level_is_after_a_time() -> None:
    found = run([1000.0] * 200 + [3000.0] * 300, options(adapt=3 * DAY, seasonality="none"))
    assert all(found[200 : 200 + 72])
    assert not any(found[200 + 73 :])


def test_a_series_that_returns_is_not_surprised_by_its_old_level() -> None:
    found = run([1000.0] * 100 + [0.0] * 48 + [1000.0] * 20, options(seasonality="none"))
    assert all(found[100:148])
    assert not any(found[148:])


def test_quiet_weekends_of_daily_runs_are_learned() -> None:
    chance = random.Random(5)
    values = [(400 if day % 7 >= 5 else 1000) * chance.gauss(1, 0.05) for day in range(140)]
    found = run(values, options(seasonality="day_of_week"), DAY)
    assert sum(found) <= 3
    assert run([*values, 400.0, 1000.0], options(seasonality="day_of_week"), DAY)[-2:] == [True, False]


def test_small_counts_vary_more_than_the_spread_of_large_ones() -> None:
    chance = random.Random(8)
    values = []
    for number in range(24 * 60):
        mean = 40 if number % 24 < 12 else 40_000  # the noise is 5 % and that of counting
        values.append(float(max(round(chance.gauss(mean * chance.gauss(1, 0.05), math.sqrt(mean))), 0)))
    assert sum(run(values, options())) <= 2


def test_after_an_anomaly_only_a_value_well_within_the_band_is_normal() -> None:
    history, chance = BandHistory(), random.Random(7)
    for number in range(24 * 20):
        take(history, START + number * HOUR, 10_000 * chance.gauss(1, 0.12), options())
    when = START + 24 * 20 * HOUR
    band = expect(history, when, options())
    assert band is not None
    assert take(history, when, band.low / 2, options()) is not None
    after = expect(history, when + HOUR, options())
    assert after is not None
    assert band.low < after.low < after.center < after.plain[1] < band.high


def test_a_history_is_small_and_bounded() -> None:
    often, hourly = BandHistory(), BandHistory()
    for minute in range(0, 20 * 1440, 5):
        take(often, START + minute * 60, float(minute % 7 + 100), options())
    for hour in range(24 * 500):
        if hour % 24 < 4 or hour > 24 * 440:
            take(hourly, START + hour * HOUR, 1.0, options())
    for history in (often, hourly):
        assert len(history.values) <= 1008
        assert len(history.days) <= 31 * 13
        assert len(msgspec.msgpack.encode(history, enc_hook=encode_array)) < 16_000
