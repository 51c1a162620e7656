"""Functions, casts and comparisons of single values, for both back ends. None is NULL."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from datetime import date, datetime, timezone
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import partial
from typing import Any

from balog.event import LEVELS, parse_level
from balog.filters.tree import Compare, Function, Kind

_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[T ]((?:[01]\d|2[0-3]):\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-](?:0\d|1[0-8]):[0-5]\d)?)?", re.ASCII
)


def parse_time(text: str) -> datetime | None:
    """Parse an ISO 8601 date or time as an aware time, in UTC without a zone; None for other texts.

    A time has seconds. Digits beyond microseconds are cut off.
    """
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    day, time, fraction, zone = match.groups()
    zone = "+00:00" if zone in (None, "Z") else zone
    try:
        text = f"{day}T{time or '00:00:00'}.{(fraction or '')[:6]:0<6}{zone}"  # the form that each Python reads
        return datetime.fromisoformat(text).astimezone(timezone.utc)
    except (ValueError, OverflowError):
        return None


def _read_string(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _read_number(value: Any) -> int | float | None:
    kind = value.__class__
    if kind is int or kind is float:
        return value  # type: ignore[no-any-return]
    return float(value) if kind is Decimal else None


def _read_bool(value: Any) -> bool | None:
    return value if value is True or value is False else None


def _read_time(value: Any) -> datetime | None:
    if isinstance(value, str):
        return parse_time(value)
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=timezone.utc)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=timezone.utc)
    return None


def read_severity(value: Any) -> int | None:
    """Return a level's number, 10 for DEBUG to 50 for CRITICAL; None for other names."""
    if not isinstance(value, str):
        return None
    level = parse_level(value)
    return LEVELS[level] if level else None


READERS: dict[Kind, Callable[[Any], Any]] = {
    "string": _read_string,
    "number": _read_number,
    "bool": _read_bool,
    "timestamp": _read_time,
    "level": read_severity,
}
"""By kind: gives a value as that kind, or None when it is of another."""


def _substr(text: str, start: float, length: float | None = None) -> str | None:
    begin, count = _int(start, 31), len(text) if length is None else _int(length, 31)
    if begin is None or count is None:
        return None
    first = begin - 1 if begin > 0 else len(text) + begin if begin < 0 else 0
    last = len(text) if length is None else first + count
    return text[max(first, 0) : max(last, 0)]


_wide = Context(prec=400, rounding=ROUND_HALF_UP)


def _round(number: float, digits: int = 0) -> float | None:
    if isinstance(number, float) and not math.isfinite(number):
        return number
    rounded = Decimal(repr(number)).quantize(Decimal(1).scaleb(-digits), context=_wide)
    return int(rounded) if isinstance(number, int) else float(rounded)


FUNCTIONS: dict[str, Function] = {
    function.name: function
    for function in (
        Function("LOWER", ("string",), "string", str.lower, "lower({0})"),
        Function("UPPER", ("string",), "string", str.upper, "upper({0})"),
        Function("LENGTH", ("string",), "number", len, "CAST(length({0}) AS DOUBLE)"),
        Function("TRIM", ("string",), "string", lambda text: text.strip(" "), "trim({0})"),
        Function("LTRIM", ("string",), "string", lambda text: text.lstrip(" "), "ltrim({0})"),
        Function("RTRIM", ("string",), "string", lambda text: text.rstrip(" "), "rtrim({0})"),
        Function("SUBSTR", ("string", "number", "number"), "string", _substr, "substring({0}, {1})", optional=1),
        Function("ABS", ("number",), "number", abs, "abs({0})"),
        Function("ROUND", ("number", "number"), "number", _round, "round({0}, {1})", optional=1),
        Function("STARTSWITH", ("string", "string"), "bool", str.startswith, "startswith({0}, {1})"),
        Function("ENDSWITH", ("string", "string"), "bool", str.endswith, "endswith({0}, {1})"),
        Function("CONTAINS", ("string", "string"), "bool", str.__contains__, "contains({0}, {1})"),
    )
}
"""The functions that take NULL for NULL. COALESCE, NULLIF, CASE and CAST are syntax."""


def _remainder(left: float, right: float) -> float:
    """Return the remainder with the sign of the left side, as SQL does."""
    if isinstance(left, int) and isinstance(right, int):
        rest = abs(left) % abs(right)
        return -rest if left < 0 else rest
    return math.fmod(left, right)


_NUMBERS: tuple[Kind, Kind] = ("number", "number")
OPERATIONS: dict[str, Function] = {
    function.name: function
    for function in (
        Function("+", _NUMBERS, "number", operator.add, "({0} + {1})"),
        Function("-", _NUMBERS, "number", operator.sub, "({0} - {1})"),
        Function("*", _NUMBERS, "number", operator.mul, "({0} * {1})"),
        Function("/", _NUMBERS, "number", operator.truediv, "try_divide({0}, {1})"),
        Function("%", _NUMBERS, "number", _remainder, "try_mod({0}, {1})"),
        Function("||", ("string", "string"), "string", operator.add, "concat({0}, {1})"),
    )
}
"""The operators that are functions of two sides."""

NEGATION = Function("-", ("number",), "number", operator.neg, "(-({0}))")

_DOUBLE = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_WHOLE = 1e15


def _to_string(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    number = _read_number(value)
    if isinstance(number, float) and number.is_integer() and abs(number) < _WHOLE:
        number = int(number)
    return None if number is None else repr(number)


def _to_double(value: Any) -> float | None:
    if isinstance(value, str):
        value = value.strip(" ")
        return float(value) if _DOUBLE.fullmatch(value) else None
    if isinstance(value, bool):
        return float(value)
    number = _read_number(value)
    return None if number is None else float(number)


def _int(value: Any, bits: int) -> int | None:
    if isinstance(value, str):
        value = value.strip(" ")
        number: float | None = int(value) if _INTEGER.fullmatch(value) else None
    else:
        number = int(value) if isinstance(value, bool) else _read_number(value)
    if number is None:
        return None
    whole = int(number)
    return whole if -(1 << bits) <= whole < 1 << bits else None


def _to_boolean(value: Any) -> bool | None:
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip(" ").lower())
    if isinstance(value, bool):
        return value
    number = _read_number(value)
    return None if number is None else number != 0


CASTS: dict[str, tuple[Kind, Callable[[Any], Any]]] = {
    "STRING": ("string", _to_string),
    "DOUBLE": ("number", _to_double),
    "INT": ("number", lambda value: _int(value, 31)),
    "BIGINT": ("number", lambda value: _int(value, 63)),
    "BOOLEAN": ("bool", _to_boolean),
}
"""What CAST can make: the kind that it gives, and how. Values that cannot become it give None or raise ValueError."""


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
FLIPPED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""The operator with its sides exchanged."""


def comparison(node: Compare) -> Callable[[Any, Any], bool | None]:
    """Return the comparison as a function of both sides' values, so that a shared side is computed once."""
    op = OPERATORS[node.op]
    if node.by == "any":
        return partial(_compare_any, op)
    read = READERS[node.by]

    def compare(left: Any, right: Any) -> bool | None:
        left_value, right_value = read(left), read(right)
        return None if left_value is None or right_value is None else op(left_value, right_value)

    return compare


def _compare_any(op: Callable[[Any, Any], bool], left: Any, right: Any) -> bool | None:
    """Compare values of unknown kinds; NULL for different kinds."""
    for kind in ("string", "number", "bool", "timestamp"):
        read = READERS[kind]
        left_value, right_value = read(left), read(right)
        if left_value is not None and right_value is not None:
            return op(left_value, right_value)
    return None
