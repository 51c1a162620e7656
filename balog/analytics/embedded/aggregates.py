"""Aggregates and window functions of Spark that DuckDB computes with equal results.

``\\0`` marks the place of FILTER and OVER in a call.
"""

from __future__ import annotations

from balog.analytics.embedded.functions import NUMBERS, ORDERED, Function, constant, need, plain
from balog.analytics.embedded.values import SparkNeeded, Value, common, digits, family


def total(value: Value) -> Value:
    """Return ``sum``: bigint, double, or a decimal with ten more digits."""
    need((value,), ("whole", "double", "decimal"))
    if family(value.kind) == "whole":
        return Value(f"CAST(sum({value.sql})\0 AS BIGINT)", "long")
    if family(value.kind) == "double":
        return Value(f"sum({value.sql})\0", "double")
    precision, scale = digits(value.kind)
    kind = f"decimal({min(precision + 10, 38)},{scale})"
    return Value(f"CAST(sum({value.sql})\0 AS {kind})", kind)


def average(value: Value) -> Value:
    """Return ``avg`` of whole numbers and doubles."""
    need((value,), NUMBERS)
    return Value(f"avg({value.sql})\0", "double")


def percentile(value: Value, share: Value) -> Value:
    """Return ``percentile``: exact and interpolated."""
    need((value,), NUMBERS)
    part = float(constant(share, object))
    if not 0 <= part <= 1:
        raise SparkNeeded("percentile() outside of 0 to 1")
    return Value(f"quantile_cont(CAST({value.sql} AS DOUBLE), {part!r})\0", "double")


def by(name: str) -> Function:
    """Return ``max_by`` or ``min_by``."""

    def make(value: Value, order: Value) -> Value:
        need((order,), ORDERED)
        return Value(f"{name}_null({value.sql}, {order.sql})\0", value.kind)

    return make


AGGREGATES: dict[str, Function] = {
    "any_value": plain("first({})\0", None, ORDERED),
    "avg": average,
    "bool_and": plain("bool_and({})\0", "boolean", ("boolean",)),
    "bool_or": plain("bool_or({})\0", "boolean", ("boolean",)),
    "count_if": plain("count(CASE WHEN {} THEN 1 END)\0", "long", ("boolean",)),
    "every": plain("bool_and({})\0", "boolean", ("boolean",)),
    "max": plain("max({})\0", None, ORDERED),
    "max_by": by("arg_max"),
    "mean": average,
    "median": plain("quantile_cont(CAST({} AS DOUBLE), 0.5)\0", "double", NUMBERS),
    "min": plain("min({})\0", None, ORDERED),
    "min_by": by("arg_min"),
    "percentile": percentile,
    "some": plain("bool_or({})\0", "boolean", ("boolean",)),
    "stddev": plain("stddev_samp({})\0", "double", NUMBERS),
    "stddev_pop": plain("stddev_pop({})\0", "double", NUMBERS),
    "stddev_samp": plain("stddev_samp({})\0", "double", NUMBERS),
    "sum": total,
    "var_pop": plain("var_pop({})\0", "double", NUMBERS),
    "variance": plain("var_samp({})\0", "double", NUMBERS),
    "var_samp": plain("var_samp({})\0", "double", NUMBERS),
}
"""Aggregates by name; ``count`` has forms of its own."""


def neighbor(name: str) -> Function:
    """Return ``lag`` or ``lead``."""

    def make(value: Value, offset: Value | None = None, default: Value | None = None) -> Value:
        number = 1 if offset is None else constant(offset, int)
        if default is None:
            return Value(f"{name}({value.sql}, {number})\0", value.kind)
        common([value, default], f"{name}()")
        return Value(f"{name}({value.sql}, {number}, {default.sql})\0", value.kind)

    return make


WINDOWS: dict[str, Function] = {
    "cume_dist": plain("cume_dist()\0", "double"),
    "dense_rank": lambda: Value("CAST(dense_rank()\0 AS INTEGER)", "integer"),
    "first_value": plain("first_value({})\0", None, ORDERED),
    "lag": neighbor("lag"),
    "last_value": plain("last_value({})\0", None, ORDERED),
    "lead": neighbor("lead"),
    "ntile": plain("CAST(ntile({})\0 AS INTEGER)", "integer", ("whole",)),
    "percent_rank": plain("percent_rank()\0", "double"),
    "rank": lambda: Value("CAST(rank()\0 AS INTEGER)", "integer"),
    "row_number": lambda: Value("CAST(row_number()\0 AS INTEGER)", "integer"),
}
"""Functions that need OVER, by name."""
