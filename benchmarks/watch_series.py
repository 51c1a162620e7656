"""Series of a year with planted faults, for the benchmark of monitors."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta, timezone
from typing import NamedTuple
from zoneinfo import ZoneInfo

HOUR, DAY = 3600.0, 86400.0
BERLIN = ZoneInfo("Europe/Berlin")
FIRST = datetime(2025, 1, 6, tzinfo=timezone.utc)
TRAINING = 28
"""Days at the beginning without faults, in which nothing is counted."""

HOLIDAYS = {date(2025, *day) for day in ((4, 18), (4, 21), (5, 1), (5, 29), (6, 9), (10, 3), (12, 25), (12, 26))}
FAULTS = ("late", "missing", "zero", "half", "double", "slow", "drift")


class Run(NamedTuple):
    """A run: its slot and its end in seconds, its records and its seconds; a missing run has none."""

    slot: float
    end: float | None
    records: int
    duration: float


class Fault(NamedTuple):
    """A planted fault, and the time in which a firing is right."""

    kind: str
    begin: float
    end: float


class Shape(NamedTuple):
    """A kind of series: its seconds between runs, its season, and its expected records at a time."""

    name: str
    step: float
    season: str
    noise: float
    expected: Callable[[datetime], float]


def _office(when: datetime) -> float:
    local = when.astimezone(BERLIN)
    closed = local.weekday() >= 5 or local.date() in HOLIDAYS
    return 200.0 if closed else 300.0 + 3000.0 * math.exp(-(((local.hour - 13) / 4) ** 2))


def _shop(when: datetime) -> float:
    local = when.astimezone(BERLIN)
    return 1500.0 + 1000.0 * math.sin((local.hour - 9) / 24 * 2 * math.pi)


def _books(when: datetime) -> float:
    local = when.astimezone(BERLIN)
    return 4000.0 if local.weekday() >= 5 or local.date() in HOLIDAYS else 50000.0


SHAPES = (
    Shape("office hours, hourly", HOUR, "hour_of_week", 0.07, _office),
    Shape("shop, hourly", HOUR, "hour_of_day", 0.10, _shop),
    Shape("flat, hourly", HOUR, "none", 0.10, lambda when: 800.0),
    Shape("ledger, daily", DAY, "day_of_week", 0.06, _books),
)


def make_year(shape: Shape, seed: int, days: int = 364) -> tuple[list[Run], list[Fault]]:
    """Return the runs of a year that grows by 40 %, and its faults: one about every six days."""
    chance = random.Random(f"{shape.name}/{seed}")
    faults = list(_plant(shape, chance, days))
    runs = []
    for number in range(int(days * DAY / shape.step)):
        slot = FIRST.timestamp() + number * shape.step
        when = datetime.fromtimestamp(slot, timezone.utc)
        growth = 1 + 0.4 * (number * shape.step / DAY) / 364
        mean = shape.expected(when) * growth
        records = mean * math.exp(chance.gauss(0, shape.noise)) + chance.gauss(0, math.sqrt(mean))
        duration = 120.0 * math.exp(chance.gauss(0, 0.15))
        end: float | None = slot + duration
        for fault in faults:
            if not fault.begin <= slot < fault.end - shape.step / 2:
                continue
            if fault.kind == "missing":
                end = None
            elif fault.kind == "late":
                end = slot + duration + 0.7 * shape.step
            elif fault.kind == "slow":
                duration *= 4
                end = slot + duration
            elif fault.kind == "drift":
                records *= max(0.35, 1 - 0.13 * ((slot - fault.begin) / shape.step + 1))
            else:
                records *= {"zero": 0.0, "half": 0.45, "double": 2.1}[fault.kind]
        runs.append(Run(slot, end, max(round(records), 0), duration))
    return runs, faults


def _plant(shape: Shape, chance: random.Random, days: int) -> Iterator[Fault]:
    """Yield faults in turn, each with quiet days around it."""
    day, number = TRAINING + 2, 0
    while day < days - 4:
        kind = FAULTS[number % len(FAULTS)]
        length = 8 if kind == "drift" and shape.step < DAY else 5 if kind == "drift" else 1 if kind == "late" else 2
        length = 1 if shape.step == DAY and kind != "drift" else length
        hours = chance.randrange(24) if shape.step < DAY else 0
        begin = (FIRST + timedelta(days=day, hours=hours)).timestamp()
        yield Fault(kind, begin, begin + (length + 0.5) * shape.step)
        day += chance.randrange(5, 8) + (5 if shape.step == DAY and kind == "drift" else 0)
        number += 1
