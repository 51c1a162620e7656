"""Which hours a report's questions are about."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import NamedTuple

from pyspark.sql import Column
from pyspark.sql import functions as f

from balog.analytics.reading.moments import literal
from balog.analytics.reporting.periods import HOUR, Comparison, Period

__all__ = ["Asked", "by_step", "finite", "read", "spans_of", "step_of", "within"]

_STEPS = ((timedelta(days=8), "hour", HOUR), (timedelta(days=200), "day", 24 * HOUR),
          (timedelta(days=1400), "week", 168 * HOUR))  # fmt: skip
_MOST = 1e300
_SECOND_HOUR = datetime.min.replace(tzinfo=timezone.utc) + HOUR


class Asked(NamedTuple):
    """What all questions are about: the period of the lists, and the two times that are compared."""

    period: Period
    compared: Comparison

    @property
    def earliest(self) -> datetime:
        """The beginning of what has to be read, but for failures: those of all times are looked at."""
        before = self.compared.before
        return min(self.period.since, before.since if before is not None else self.period.since)


def step_of(period: Period) -> tuple[str, timedelta]:
    """Give the step of the throughput: hours, days, weeks or (30 days) months, some 200 at most."""
    for longest, name, step in _STEPS:
        if period.length <= longest:
            return name, step
    return "month", timedelta(days=30)


def within(period: Period | None) -> Column:
    """Tell whether a row's hour is in part in that time."""
    if period is None:
        return f.lit(False)
    # an hour that the period begins within has only events of the period, see report._counted
    before = f.col("hour") < literal(period.until)
    if period.since < _SECOND_HOUR:
        return before
    return (f.col("hour") > literal(period.since - HOUR)) & before


def read(asked: Asked) -> Column:
    """Tell whether a row's hour is looked at."""
    return within(Period(asked.earliest, asked.period.until))


def spans_of(asked: Asked) -> dict[str, Column]:
    """Give the conditions of the period, of now and of before, by the ending of their columns' names."""
    return {
        "": within(asked.period),
        "_now": within(asked.compared.now),
        "_before": within(asked.compared.before),
    }


def finite(total: Column) -> Column:
    """Give a sum of doubles as one that JSON can tell."""
    return f.greatest(f.least(f.nanvl(total, f.lit(0.0)), f.lit(_MOST)), f.lit(-_MOST)) + f.when(total.isNotNull(), 0.0)


def by_step(asked: Asked) -> Column:
    """Give the step of the throughput that a row's hour is in, as ``at``."""
    name, _ = step_of(asked.period)
    return (f.col("hour") if name == "hour" else f.date_trunc(name, "hour")).alias("at")
