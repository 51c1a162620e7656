"""Checks of single values beyond types: bounds, lengths, patterns, multiples, unique items, and choices.

A tap checks them without further packages, so that records which targets would reject are found at their source. It
does not check ``contains``, ``dependencies`` and its successors, ``propertyNames``, ``unevaluated…``, and formats
other than those of times.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from typing import Any

from balog.tap.json_schema.keywords import is_number
from balog.tap.json_schema.mismatch import MismatchError

Check = Callable[[Any], None]
"""Raises MismatchError for a value that breaks the rule."""

_MAX_EXPONENT = 400  # a float has fewer digits; a Decimal may have millions
_UNITS = {"string": "characters", "array": "items", "object": "properties"}
_BOUNDS: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "minimum": ("of at least", operator.ge),
    "exclusiveMinimum": ("above", operator.gt),
    "maximum": ("of at most", operator.le),
    "exclusiveMaximum": ("below", operator.lt),
}


def finite(value: Any) -> bool:
    """Return whether a number is finite, as JSON requires."""
    if type(value) is float:
        return isfinite(value)
    if type(value) is Decimal:  # JSON's readers turn 1e400 into infinity
        return value.is_finite() and isfinite(float(value))
    return True


def is_equal(one: Any, other: Any) -> bool:
    """Return whether two values are the same JSON: 1 equals 1.0, and neither equals true."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_equal, one, other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(is_equal(item, other[name]) for name, item in one.items())
    return bool(by_digits(one) == by_digits(other))


def by_digits(value: Any) -> Any:
    """Return a float as a Decimal of its shortest digits, to compare it with one: 0.1 equals Decimal("0.1")."""
    return Decimal(repr(value)) if type(value) is float else value


def _bound(schema: Mapping[str, Any], keyword: str) -> Check | None:
    bound = schema[keyword]
    if not is_number(bound):
        return None
    digits = by_digits(bound)
    exclusive = f"exclusive{keyword.capitalize()}"  # in draft 4 a flag beside the bound
    words, is_kept = _BOUNDS[exclusive if schema.get(exclusive) is True else keyword]

    def check(value: Any) -> None:
        if not is_kept(value, digits if type(value) is Decimal else bound):
            raise MismatchError(f"want a number {words} {bound}")

    return check


def _multiple(schema: Mapping[str, Any], keyword: str) -> Check | None:
    step = schema[keyword]
    if not is_number(step) or step <= 0:
        return None

    def check(value: Any) -> None:
        if not _is_multiple(value, step):
            raise MismatchError(f"want a multiple of {step}")

    return check


def _is_multiple(value: Any, step: Any) -> bool:
    """Return whether a number is a multiple of another, according to their decimal digits: 0.3 is one of 0.1."""
    if type(value) is int and type(step) is int:
        return value % step == 0
    number, divisor = Decimal(str(value)), Decimal(str(step))
    if not number.is_finite():
        return False
    try:
        return number % divisor == 0
    except ArithmeticError:  # more digits than Decimal's context has
        if number.adjusted() - divisor.adjusted() > _MAX_EXPONENT:
            return True
        return (Fraction(number) / Fraction(divisor)).denominator == 1


def _size(schema: Mapping[str, Any], keyword: str) -> Check | None:
    bound = schema[keyword]
    words, is_kept = ("at least", operator.ge) if keyword.startswith("min") else ("at most", operator.le)
    if type(bound) is not int or (bound == 0 and is_kept is operator.ge):
        return None
    wanted = f"want {words} {bound} {_UNITS[LIMITS[keyword][0]]}"

    def check(value: Any) -> None:
        if not is_kept(len(value), bound):
            raise MismatchError(f"{wanted}, has {len(value)}")

    return check


def _pattern(schema: Mapping[str, Any], keyword: str) -> Check | None:
    pattern = schema[keyword]
    try:
        search = re.compile(pattern).search
    except (re.error, TypeError, OverflowError, RecursionError):  # another dialect, such as \p{L}: targets check it
        return None

    def check(value: Any) -> None:
        if not search(value):
            raise MismatchError(f"want a match of the pattern {pattern}")

    return check


def _check_unique(items: Sequence[Any]) -> None:
    texts: set[str] = set()
    others: list[Any] = []
    for index, item in enumerate(items):
        if isinstance(item, str):
            is_repeated = item in texts
            texts.add(item)
        else:
            is_repeated = any(is_equal(item, other) for other in others)
            others.append(item)
        if is_repeated:
            raise MismatchError(f"want items that are unique; the one at index {index} is not")


LIMITS: dict[str, tuple[str, Callable[[Mapping[str, Any], str], Check | None]]] = {
    **dict.fromkeys(_BOUNDS, ("number", _bound)),
    "multipleOf": ("number", _multiple),
    **dict.fromkeys(("minLength", "maxLength"), ("string", _size)),
    "pattern": ("string", _pattern),
    **dict.fromkeys(("minItems", "maxItems"), ("array", _size)),
    "uniqueItems": ("array", lambda schema, keyword: _check_unique if schema[keyword] is True else None),
    **dict.fromkeys(("minProperties", "maxProperties"), ("object", _size)),
}
"""By keyword: the type of the values that it limits, and a function that makes its check; None without a limit."""

ASKS = frozenset(
    (
        *("properties", "patternProperties", "additionalProperties", "required", "items", "prefixItems"),
        *("additionalItems", "enum", "const", "format", *LIMITS),
    )
)
"""Keywords that restrict a record's value, except those in ``COMBINING``."""


def limits_of(schema: Mapping[str, Any], kind: str) -> list[Check]:
    """Return the checks of a schema for values of a JSON type: ``number``, ``string``, ``array`` or ``object``."""
    makers = [(keyword, make) for keyword, (limited, make) in LIMITS.items() if limited == kind and keyword in schema]
    return [check for keyword, make in makers if (check := make(schema, keyword)) is not None]


def choices(schema: Mapping[str, Any]) -> list[Check]:
    """Return the checks of ``enum`` and ``const``."""
    checks = []
    if isinstance(allowed := schema.get("enum"), list):
        checks.append(_one_of(allowed, "want one of the enum's values"))
    if "const" in schema:
        checks.append(_one_of([schema["const"]], "want the schema's const"))
    return checks


def _one_of(allowed: list[Any], wanted: str) -> Check:
    texts = frozenset(item for item in allowed if isinstance(item, str))
    others = [item for item in allowed if not isinstance(item, str)]

    def check(value: Any) -> None:
        if type(value) is str:
            if value in texts:
                return
        elif any(is_equal(value, item) for item in others):
            return
        raise MismatchError(wanted)

    return check
