"""Spark's filters, turned into conditions that the parser asks, so that what they leave out never leaves the worker.

Only what certainly means the same in both is taken: comparisons, IN and IS NOT NULL on ``timestamp``, ``channel``,
``level`` and ``cls_type``, and ``quarantine IS NULL``. None of them is true of a row of quarantine, in which all else
is null, so those rows need not be made at all. Spark itself asks the rest.

Bounds on the time also leave out whole files; see ``balog.analytics.reading.pruning.Pruner`` for what it takes their
folders' days to mean.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
)

__all__ = ["Condition", "Pushed", "is_of_type", "push"]

_TEXTS = ("channel", "level", "cls_type")
_SIGNS: dict[type[Filter], str] = {
    EqualTo: "=", EqualNullSafe: "=", GreaterThan: ">", GreaterThanOrEqual: ">=", LessThan: "<", LessThanOrEqual: "<=",
}  # fmt: skip
_LONGEST_LIST = 1000


class Condition(NamedTuple):
    """What a column has to be: SQL that follows the column's expression. Without a column all events are wanted."""

    column: str
    text: str


class Pushed(NamedTuple):
    """Conditions that all hold of every row that is wanted.

    Attributes:
        since: no row is earlier.
        until: no row is at that time or later.
        left: filters that are still Spark's to ask.
    """

    where: tuple[Condition, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    left: tuple[Filter, ...] = ()


def is_of_type(cls_type: str) -> Condition:
    """Give the condition of events of one payload type."""
    return Condition("cls_type", f"= {_literal(cls_type)}")


def push(filters: Iterable[Filter], columns: Collection[str]) -> Pushed:
    """Take what filters can be asked by the parser.

    Args:
        filters: all of them hold of what is wanted.
        columns: of the source, the only ones that filters are about.
    """
    where: list[Condition] = []
    left: list[Filter] = []
    lows: list[datetime] = []
    highs: list[datetime] = []
    for one in filters:
        condition = _condition(one, columns)
        if condition is None:
            left.append(one)
            continue
        where.append(condition)
        low, high = _bounds(one)
        lows += [low] if low else []
        highs += [high] if high else []
    return Pushed(tuple(where), max(lows, default=None), min(highs, default=None), tuple(left))


def _condition(one: Filter, columns: Collection[str]) -> Condition | None:
    is_negated = isinstance(one, Not)
    inner = one.child if isinstance(one, Not) else one
    path: Sequence[str] = getattr(inner, "attribute", ())
    if len(path) != 1 or path[0] not in columns:
        return None
    name = path[0]
    if isinstance(inner, IsNull) and name == "quarantine" and not is_negated:
        return Condition("", "true")
    if name not in (*_TEXTS, "timestamp"):
        return None
    if isinstance(inner, IsNotNull) and not is_negated:
        return Condition(name, "IS NOT NULL")
    if isinstance(inner, In):
        return _membership(name, inner.value, is_negated)
    if is_negated and not isinstance(inner, EqualTo):
        return None
    sign = _SIGNS.get(type(inner))
    literal = None if sign is None else _typed(name, inner.value)  # type: ignore[attr-defined]
    return None if literal is None else Condition(name, f"{'<>' if is_negated else sign} {literal}")


def _membership(name: str, values: Collection[Any], is_negated: bool) -> Condition | None:
    if len(values) > _LONGEST_LIST or (is_negated and None in values):  # x NOT IN (1, NULL) is never true
        return None
    literals = [_typed(name, value) for value in values if value is not None]
    if not literals or None in literals:
        return None
    return Condition(name, f"{'NOT ' if is_negated else ''}IN ({', '.join(map(str, literals))})")


def _typed(name: str, value: Any) -> str | None:
    if name == "timestamp":
        if not isinstance(value, datetime) or value.tzinfo is None:
            return None
        return f"TIMESTAMPTZ {_literal(value.astimezone(timezone.utc).isoformat())}"
    return _literal(value) if isinstance(value, str) and "\0" not in value else None


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _bounds(filter_: Filter) -> tuple[datetime | None, datetime | None]:
    if getattr(filter_, "attribute", None) != ("timestamp",) or isinstance(filter_, (Not, IsNotNull, IsNull)):
        return None, None
    values = [value for value in (filter_.value if isinstance(filter_, In) else [filter_.value]) if value is not None]  # type: ignore[attr-defined]
    low, high = min(values), max(values)
    try:
        after = high + timedelta(microseconds=1)
    except OverflowError:
        after = None
    return (
        None if isinstance(filter_, (LessThan, LessThanOrEqual)) else low,
        None if isinstance(filter_, (GreaterThan, GreaterThanOrEqual)) else after,
    )
