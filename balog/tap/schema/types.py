"""Schemas keywords in a line of Python: a one-page tap needs no JSON file.

``obj({"id": integer(null=False), "name": string(), "at": date_time()})``. What may be null is so in its ``type``, null
first, which is how taps write it; keys (``key_properties``) should be declared with ``null=False``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

__all__ = ["array", "boolean", "date", "date_time", "decimal", "integer", "number", "obj", "one_of", "string"]


def string(*, null: bool = True, max_length: int | None = None, format: str | None = None) -> dict[str, Any]:
    """Say a text; ``max_length`` in characters makes a VARCHAR of that length at some targets."""
    return _typed("string", null, maxLength=max_length, format=format)


def date_time(*, null: bool = True) -> dict[str, Any]:
    """Say an instant, as text by RFC 3339 (``2026-11-22T08:00:00Z``)."""
    return string(null=null, format="date-time")


def date(*, null: bool = True) -> dict[str, Any]:
    """Say a day, as text (``2026-11-22``)."""
    return string(null=null, format="date")


def integer(*, null: bool = True, minimum: int | None = None, maximum: int | None = None) -> dict[str, Any]:
    """Say a whole number; the bounds tell some targets which of their integers is wide enough."""
    return _typed("integer", null, minimum=minimum, maximum=maximum)


def number(*, null: bool = True, minimum: float | None = None, maximum: float | None = None) -> dict[str, Any]:
    """Say a number of any kind."""
    return _typed("number", null, minimum=minimum, maximum=maximum)


def decimal(precision: int, scale: int, *, null: bool = True) -> dict[str, Any]:
    """Say a decimal of so many digits, ``scale`` of them behind the point.

    As PipelineWise's taps say it: ``multipleOf`` for the scale, exclusive bounds for the precision. A validator that
    computes with floats takes 1.1 for no multiple of 0.01; where such a one is behind the tap, say ``number()``.
    """
    if not 0 <= scale <= precision <= 100 or precision == 0:
        raise ValueError("want a precision of 1 to 100 digits, and a scale of 0 to the precision")
    most = 10 ** (precision - scale)
    step = Decimal(1).scaleb(-scale)
    return _typed("number", null, multipleOf=float(step), exclusiveMinimum=-most, exclusiveMaximum=most)


def boolean(*, null: bool = True) -> dict[str, Any]:
    """Say true or false."""
    return _typed("boolean", null)


def one_of(*values: str, null: bool = True) -> dict[str, Any]:
    """Say a text that is one of some."""
    return _typed("string", null, enum=[*values, *([None] if null else [])])


def array(of: Mapping[str, Any], *, null: bool = True) -> dict[str, Any]:
    """Say a list of such items."""
    return _typed("array", null, items=dict(of))


def obj(
    properties: Mapping[str, Mapping[str, Any]], *, null: bool = False, required: Sequence[str] = ()
) -> dict[str, Any]:
    """Say an object with these members; others are allowed. A stream's schema is one that can't be null."""
    members = {name: dict(schema) for name, schema in properties.items()}
    return _typed("object", null, properties=members, required=list(required) or None)


def _typed(kind: str, null: bool, **keywords: Any) -> dict[str, Any]:
    rest = {name: value for name, value in keywords.items() if value is not None}
    return {"type": ["null", kind] if null else kind, **rest}
