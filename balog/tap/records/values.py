"""Functions that make single values fit: numbers, strings, times, and values without a schema."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from math import isfinite
from typing import Any

from balog.tap.json_schema.checks import Check, finite
from balog.tap.json_schema.mismatch import MismatchError
from balog.tap.records.coercion import NOTHING, TO
from balog.tap.records.objects import CompiledSchema, ObjectRules, array_of, object_of
from balog.tap.records.plain import simplify
from balog.tap.records.times import FORMATS

_PLAIN = frozenset({type(None), bool, int, str})


def anything(value: Any) -> Any:
    """Convert a value without a schema to JSON types, at all levels.

    Raises:
        MismatchError: a part has no form in JSON.
    """
    if type(value) in _PLAIN:
        return value
    simple = simplify(value)
    if type(simple) is dict:
        return _any_object(simple)
    if type(simple) is list:
        return _any_array(simple)
    if not finite(simple):
        raise MismatchError("want a number that JSON can write, got one that is not finite")
    return simple


ANYTHING = CompiledSchema(_PLAIN, anything)
"""The compiled schema that allows anything."""

_any_object = object_of(ObjectRules({}, (), ANYTHING, (), False, lambda name: None))
_any_array = array_of((), ANYTHING, ())


def as_it_is(value: Any) -> Any:
    """Return the value unchanged."""
    return value


def refuse(value: Any) -> Any:
    """Reject any value."""
    raise MismatchError("is where the schema allows nothing")


def checked(maker: Callable[[Any], Any], checks: list[Check]) -> Callable[[Any], Any]:
    """Return a maker that also checks its results."""
    if not checks:
        return maker

    def make(value: Any) -> Any:
        value = maker(value)
        for check in checks:
            if value is not None:
                check(value)
        return value

    return make


def real(kind: type, is_null_for_none: bool, maker: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function that makes floats or Decimals fit.

    Args:
        kind: float or Decimal.
        is_null_for_none: whether numbers that are not finite become null.
        maker: makes finite numbers fit.
    """
    is_finite: Callable[[Any], bool] = isfinite if kind is float else Decimal.is_finite

    def refuse_it() -> None:
        if not is_null_for_none:
            raise MismatchError("want a number that JSON can write, got one that is not finite")

    if maker is as_it_is:  # most numbers
        return lambda value: value if is_finite(value) else refuse_it()
    return lambda value: maker(value) if is_finite(value) else refuse_it()


def whole(as_text: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    """Return a function that converts numbers without a fraction to integers, and others to strings if allowed."""

    def make(value: Any) -> Any:
        made = TO["integer"](value)
        if made is not NOTHING:
            return made
        if as_text is None:
            raise MismatchError("want an integer, got a number with a fraction")
        return as_text(TO["string"](value))

    return make


def formatted(format: str, is_nullable: bool, coerces: bool) -> Callable[[Any], Any]:
    """Return a function that makes strings fit one of ``times.FORMATS``."""
    is_one, convert = FORMATS[format]

    def make(value: Any) -> Any:
        if is_one(value):
            return value
        if coerces:
            if (made := convert(value)) is not None:
                return made
            if is_nullable and not value:
                return None
        raise MismatchError(f"want a string of the format {format}, got another string")

    return make
