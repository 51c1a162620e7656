"""Checks of records beyond types: bounds, lengths, patterns, multiples, unique items, and choices.

A tap checks them without further packages, so that records which targets would reject are found at their source. It
does not check ``contains``, ``dependencies`` and its successors, ``propertyNames``, ``unevaluated…``, and formats
other than those of times.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from math import isfinite
from typing import Any

from balog.tap.constraints import BOUNDS, SIZES, is_equal, is_multiple, repeated
from balog.tap.records.mismatch import MismatchError

Check = Callable[[Any], None]
"""Raises MismatchError for a value that breaks the rule."""


def finite(value: Any) -> bool:
    """Return whether a number is finite, as JSON requires."""
    if type(value) is float:
        return isfinite(value)
    return value.is_finite() if type(value) is Decimal else True


def limits_of(schema: Mapping[str, Any], kind: str) -> list[Check]:
    """Return the checks of a schema for values of a JSON type: ``number``, ``string``, ``array`` or ``object``."""
    if kind == "number":
        return _numbers(schema)
    checks = [
        _size(bound, is_kept, f"want {words} {bound} {_UNITS[kind]}")
        for keyword, (limited, words, is_kept) in SIZES.items()
        if limited == kind and type(bound := schema.get(keyword)) is int and (bound > 0 or keyword[:3] == "max")
    ]
    if kind == "string" and isinstance(pattern := schema.get("pattern"), str):
        checks += _pattern(pattern)
    if kind == "array" and schema.get("uniqueItems") is True:
        checks.append(_unique)
    return checks


_UNITS = {"string": "characters", "array": "items", "object": "properties"}


def _size(bound: int, is_kept: Callable[[int, int], bool], wanted: str) -> Check:
    def check(value: Any) -> None:
        if not is_kept(len(value), bound):
            raise MismatchError(f"{wanted}, has {len(value)}")

    return check


def _numbers(schema: Mapping[str, Any]) -> list[Check]:
    checks = []
    for keyword, words in _BOUND_WORDS.items():
        bound = schema.get(keyword)
        if not isinstance(bound, bool) and isinstance(bound, int | float):
            exclusive = f"exclusive{keyword.capitalize()}"
            if schema.get(exclusive) is True:  # draft 4: a flag beside the bound
                checks.append(_bound(bound, BOUNDS[exclusive], _BOUND_WORDS[exclusive]))
            else:
                checks.append(_bound(bound, BOUNDS[keyword], words))
    step = schema.get("multipleOf")
    if not isinstance(step, bool) and isinstance(step, int | float) and step > 0:
        checks.append(_multiple(step))
    return checks


_BOUND_WORDS = {
    "minimum": "of at least",
    "exclusiveMinimum": "above",
    "maximum": "of at most",
    "exclusiveMaximum": "below",
}


def _bound(bound: Any, is_kept: Callable[[Any, Any], bool], words: str) -> Check:
    def check(value: Any) -> None:
        if not is_kept(value, bound):
            raise MismatchError(f"want a number {words} {bound}")

    return check


def _multiple(step: int | float) -> Check:
    def check(value: Any) -> None:
        if not is_multiple(value, step):
            raise MismatchError(f"want a multiple of {step}")

    return check


def _pattern(pattern: str) -> list[Check]:
    try:
        search = re.compile(pattern).search
    except (re.error, OverflowError, RecursionError):  # a pattern of another dialect, such as \p{L}: targets check it
        return []

    def check(value: Any) -> None:
        if not search(value):
            raise MismatchError("want a string that the schema's pattern fits")

    return [check]


def _unique(value: Any) -> None:
    if next(repeated(value), None) is not None:
        raise MismatchError("want items that are unique")


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
