"""What JSON Schema asks of a value beyond its type: bounds, lengths, patterns, multiples, unique items, choices.

Looked at here, so that a record that a target would refuse is found where it comes from, with no package more. Not
looked at: ``contains``, ``dependencies`` and its successors, ``propertyNames``, ``unevaluated…``, and formats other
than those of times.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from math import isfinite
from typing import Any

from balog.tap.equality import same
from balog.tap.records.mismatch import Fault

__all__ = ["Check", "choices", "finite", "limits_of"]

Check = Callable[[Any], None]
"""Raises Fault, or does nothing."""


def finite(value: Any) -> bool:
    """Tell whether a number is one that JSON can write."""
    if type(value) is float:
        return isfinite(value)
    return value.is_finite() if type(value) is Decimal else True


def limits_of(schema: Mapping[str, Any], kind: str) -> list[Check]:
    """Give the checks of a schema for values of a JSON type: ``number``, ``string``, ``array`` or ``object``."""
    if kind == "number":
        return _numbers(schema)
    checks = []
    low, high, unit = _SIZES[kind]
    if type(least := schema.get(low)) is int and least > 0:
        checks.append(_size(lambda size: size >= least, f"want at least {least} {unit}"))
    if type(most := schema.get(high)) is int:
        checks.append(_size(lambda size: size <= most, f"want at most {most} {unit}"))
    if kind == "string" and isinstance(pattern := schema.get("pattern"), str):
        checks += _pattern(pattern)
    if kind == "array" and schema.get("uniqueItems") is True:
        checks.append(_unique)
    return checks


_SIZES = {
    "string": ("minLength", "maxLength", "characters"),
    "array": ("minItems", "maxItems", "items"),
    "object": ("minProperties", "maxProperties", "properties"),
}


def _size(fits: Callable[[int], bool], wanted: str) -> Check:
    def check(value: Any) -> None:
        if not fits(len(value)):
            raise Fault(f"{wanted}, has {len(value)}")

    return check


def _numbers(schema: Mapping[str, Any]) -> list[Check]:
    checks = []
    for name, is_over, said in _BOUNDS:
        bound = schema.get(name)
        if not isinstance(bound, bool) and isinstance(bound, int | float):
            # Draft 4 says exclusiveMinimum: true beside the minimum.
            is_exclusive = name.startswith("exclusive") or schema.get(f"exclusive{name.capitalize()}") is True
            checks.append(_bound(bound, is_over, is_exclusive, said))
    step = schema.get("multipleOf")
    if not isinstance(step, bool) and isinstance(step, int | float) and step > 0:
        checks.append(_multiple(step))
    return checks


_BOUNDS: tuple[tuple[str, Callable[[Any, Any], bool], str], ...] = (
    ("minimum", lambda value, bound: value < bound, "at least"),
    ("exclusiveMinimum", lambda value, bound: value < bound, "at least"),
    ("maximum", lambda value, bound: value > bound, "at most"),
    ("exclusiveMaximum", lambda value, bound: value > bound, "at most"),
)


def _bound(bound: Any, is_over: Callable[[Any, Any], bool], is_exclusive: bool, said: str) -> Check:
    wanted = f"want a number of {said} {bound}{', and not itself' if is_exclusive else ''}"

    def check(value: Any) -> None:
        if is_over(value, bound) or (is_exclusive and value == bound):
            raise Fault(wanted)

    return check


def _multiple(step: int | float) -> Check:
    exact = Decimal(str(step))

    def check(value: Any) -> None:
        if type(value) is int and type(step) is int:
            is_multiple = value % step == 0
        else:
            try:
                is_multiple = Decimal(str(value)) % exact == 0
            except ArithmeticError:  # more digits between them than are counted
                is_multiple = True
        if not is_multiple:
            raise Fault(f"want a multiple of {step}")

    return check


def _pattern(pattern: str) -> list[Check]:
    try:
        search = re.compile(pattern).search
    except (
        re.error,
        OverflowError,
        RecursionError,
    ):  # a pattern of another dialect, such as \p{L}: the target's to check
        return []

    def check(value: Any) -> None:
        if not search(value):
            raise Fault("want a string that the schema's pattern fits")

    return [check]


def _unique(value: Any) -> None:
    seen: list[Any] = []
    hashed: set[Any] = set()
    for item in value:
        if isinstance(item, str):
            is_new = item not in hashed
            hashed.add(item)
        else:
            is_new = not any(same(item, other) for other in seen)
            seen.append(item)
        if not is_new:
            raise Fault("want items that are unique")


def choices(schema: Mapping[str, Any]) -> list[Check]:
    """Give the checks of ``enum`` and ``const``."""
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
        elif any(same(value, item) for item in others):
            return
        raise Fault(wanted)

    return check
