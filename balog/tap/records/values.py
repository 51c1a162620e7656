"""Functions that make values fit a type, a format or one of several schemas, and the coercions without loss."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from math import isfinite
from typing import Any

import msgspec

from balog.tap.json_schema.mismatch import MismatchError
from balog.tap.records.objects import CompiledSchema, ObjectRules, array_of, object_of
from balog.tap.records.plain import finite, simplify
from balog.tap.records.times import FORMATS
from balog.tap.records.validation import RecordValidator

NOTHING: Any = object()
"""The result of a coercion that would lose something."""

_number = re.compile(r"\s*[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,4})?\s*", re.ASCII).fullmatch
_integer = re.compile(r"\s*[+-]?\d+\s*", re.ASCII).fullmatch
_MAX_DIGITS = 4000
_encode = msgspec.json.Encoder(decimal_format="number").encode
_TRUTHS = {"true": True, "false": False, "1": True, "0": False}


def _to_number(value: Any) -> Any:
    """Convert a string to a number with all its digits, to an integer if it has no fraction."""
    if type(value) is not str or len(value) > _MAX_DIGITS or not _number(value):
        return NOTHING
    if _integer(value):
        return int(value)
    try:
        return Decimal(value.strip())
    except InvalidOperation:
        return NOTHING


def _to_integer(value: Any) -> Any:
    """Convert a number without a fraction to an integer: ``"12"``, ``12.0``, ``"12.00"``."""
    number = value if type(value) in (float, Decimal) else _to_number(value)
    if number is NOTHING or type(number) is int:
        return number
    if not finite(number):
        return NOTHING
    if type(number) is Decimal and number.adjusted() > _MAX_DIGITS:
        return NOTHING
    return int(number) if number == int(number) else NOTHING


def _to_boolean(value: Any) -> Any:
    """Convert the strings true and false, 1 and 0 to booleans; other words are ambiguous."""
    if type(value) is str:
        return _TRUTHS.get(value.strip().lower(), NOTHING)
    return bool(value) if type(value) is int and value in (0, 1) else NOTHING


def _to_string(value: Any) -> Any:
    """Convert a value to its JSON text. Arrays and objects have only JSON types inside."""
    kind = type(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is int:
        try:
            return str(value)
        except ValueError:  # thousands of digits
            return NOTHING
    if kind is float or kind is Decimal:
        return (format(value, "f") if kind is Decimal else repr(value)) if finite(value) else NOTHING
    if kind is dict or kind is list:
        try:
            return _encode(value).decode()
        except (TypeError, ValueError, RecursionError):
            return NOTHING
    return NOTHING


def _to_null(value: Any) -> Any:
    """Convert the empty string, and numbers that are not finite, to null."""
    return None if value == "" or (type(value) in (float, Decimal) and not finite(value)) else NOTHING


TO: dict[str, Callable[[Any], Any]] = {
    "number": _to_number,
    "integer": _to_integer,
    "boolean": _to_boolean,
    "string": _to_string,
    "null": _to_null,
}
"""By target type: returns the value or ``NOTHING``. No value is coerced to an array or an object."""


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
        raise MismatchError("expected a number that JSON can write, got one that is not finite")
    return simple


ANYTHING = CompiledSchema(_PLAIN, anything)
"""The compiled schema that allows anything."""

_any_object = object_of(ObjectRules({}, (), ANYTHING, (), False, lambda name: None))
_any_array = array_of((), ANYTHING)


def as_it_is(value: Any) -> Any:
    """Return the value unchanged."""
    return value


def real(kind: type, is_null_for_none: bool, maker: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function that makes floats or Decimals fit.

    Args:
        kind: float or Decimal.
        is_null_for_none: whether numbers that are not finite become null.
        maker: makes finite numbers fit.
    """
    is_finite: Callable[[Any], bool] = isfinite if kind is float else finite

    def refuse_it() -> None:
        if not is_null_for_none:
            raise MismatchError("expected a number that JSON can write, got one that is not finite")

    if maker is as_it_is:  # most numbers
        return lambda value: value if is_finite(value) else refuse_it()
    return lambda value: maker(value) if is_finite(value) else refuse_it()


def whole(as_text: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    """Return a function that converts numbers without a fraction to integers, and others to strings if allowed."""

    def make(value: Any) -> Any:
        integer = TO["integer"](value)
        if integer is not NOTHING:
            return integer
        if as_text is None:
            raise MismatchError("expected an integer, got a number with a fraction")
        return as_text(TO["string"](value))

    return make


def formatted(format: str, is_nullable: bool, coerces: bool) -> Callable[[Any], Any]:
    """Return a function that makes strings fit one of ``times.FORMATS``."""
    is_one, convert = FORMATS[format]

    def make(value: Any) -> Any:
        if is_one(value):
            return value
        if coerces:
            if (text := convert(value)) is not None:
                return text
            if is_nullable and not value:
                return None
        raise MismatchError(f"expected a string of the format {format}, got another string")

    return make


Fit = Callable[[Any], Any]
"""Returns a value that fits, or raises MismatchError."""


def fitting_any(fits: list[Fit], validators: list[RecordValidator]) -> Fit:
    """Return a function that makes a value fit one of several schemas.

    It prefers the first schema that the value fits unchanged, then one that it fits with fewer properties, then one
    that it fits after coercion.

    Args:
        fits: the schemas.
        validators: those of the same schemas.
    """

    def make(value: Any) -> Any:
        first, mismatches = NOTHING, []
        for fit, validator in zip(fits, validators):
            try:
                if validator.is_valid(value):
                    fitted_value = fit(value)
                    if fitted_value is value:
                        return value
                    first = fitted_value if first is NOTHING else first
            except MismatchError:  # of a format
                continue
        if first is not NOTHING:
            return first
        for fit, validator in zip(fits, validators):
            try:
                return validator.check(fit(value))
            except MismatchError as mismatch:
                mismatches.append(mismatch)
        raise _nearest(mismatches)

    return make


def _nearest(mismatches: list[MismatchError]) -> MismatchError:
    """Return the deepest mismatch, else one mismatch with the reasons of all."""
    deepest = max(mismatches, key=lambda mismatch: len(mismatch.steps))
    if deepest.steps or len(mismatches) == 1:
        return deepest
    return MismatchError("; or ".join(dict.fromkeys(mismatch.reason for mismatch in mismatches)))
