"""What JSON Schema's keywords of bounds, sizes, multiples and uniqueness mean, for configs and for records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

_MAX_EXPONENT = 400  # a float has fewer digits; a Decimal may have millions

BOUNDS: dict[str, Callable[[Any, Any], bool]] = {
    "minimum": lambda value, bound: value >= bound,
    "exclusiveMinimum": lambda value, bound: value > bound,
    "maximum": lambda value, bound: value <= bound,
    "exclusiveMaximum": lambda value, bound: value < bound,
}
"""By keyword: whether a number keeps to a bound."""

SIZES: dict[str, tuple[str, str, Callable[[int, int], bool]]] = {
    f"{limit}{name}": (kind, words, is_kept)
    for kind, name in (("string", "Length"), ("array", "Items"), ("object", "Properties"))
    for limit, words, is_kept in (
        ("min", "at least", lambda size, bound: size >= bound),
        ("max", "at most", lambda size, bound: size <= bound),
    )
}
"""By keyword: the JSON type that it limits, its words, and whether a size keeps to it."""


def is_equal(one: Any, other: Any) -> bool:
    """Return whether two values are the same JSON: 1 equals 1.0, and neither equals true."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_equal, one, other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(is_equal(item, other[name]) for name, item in one.items())
    return bool(one == other)


def is_multiple(value: Any, step: Any) -> bool:
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


def repeated(items: Sequence[Any]) -> Iterator[int]:
    """Yield the index of each item that equals an earlier one."""
    texts: set[str] = set()
    others: list[Any] = []
    for index, item in enumerate(items):
        if isinstance(item, str):
            if item in texts:
                yield index
            texts.add(item)
        elif any(is_equal(item, other) for other in others):
            yield index
        else:
            others.append(item)
