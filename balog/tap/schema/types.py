"""Short forms of schemas in Python, for small taps without JSON files.

``obj({"id": integer(null=False), "name": string(), "at": date_time()})``. Nullable types are
``["null", …]``, the usual form of taps. Declare keys (``key_properties``) with ``null=False``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

__all__ = ["array", "boolean", "date", "date_time", "decimal", "integer", "number", "obj", "one_of", "string"]


def string(*, null: bool = True, max_length: int | None = None, format: str | None = None) -> dict[str, Any]:
    """Return the schema of a string.

    Args:
        null: allow null.
        max_length: in characters; some targets make a VARCHAR of this length.
        format: of JSON Schema, such as ``email``; None for any text.
    """
    return _typed("string", null, maxLength=max_length, format=format)


def date_time(*, null: bool = True) -> dict[str, Any]:
    """Return the schema of an RFC 3339 date-time (``2026-11-22T08:00:00Z``)."""
    return string(null=null, format="date-time")


def date(*, null: bool = True) -> dict[str, Any]:
    """Return the schema of a date (``2026-11-22``)."""
    return string(null=null, format="date")


def integer(*, null: bool = True, minimum: int | None = None, maximum: int | None = None) -> dict[str, Any]:
    """Return the schema of an integer; some targets choose the width of their integers from the bounds.

    Args:
        null: allow null.
        minimum, maximum: inclusive bounds; None for no bound.
    """
    return _typed("integer", null, minimum=minimum, maximum=maximum)


def number(*, null: bool = True, minimum: float | None = None, maximum: float | None = None) -> dict[str, Any]:
    """Return the schema of a number.

    Args:
        null: allow null.
        minimum, maximum: inclusive bounds; None for no bound.
    """
    return _typed("number", null, minimum=minimum, maximum=maximum)


def decimal(precision: int, scale: int, *, null: bool = True) -> dict[str, Any]:
    """Return the schema of a decimal.

    The form is that of PipelineWise's taps: ``multipleOf`` for the scale, exclusive bounds for the precision.
    Validators that use floats reject 1.1 as a multiple of 0.01; for such targets, use ``number()``.

    Args:
        precision: the number of digits, 1 to 100.
        scale: how many of them are after the decimal point.
        null: allow null.

    Raises:
        ValueError: the precision or the scale is out of range.
    """
    if not 0 <= scale <= precision <= 100 or precision == 0:
        raise ValueError("expected a precision of 1 to 100 digits, and a scale of 0 to the precision")
    most = 10 ** (precision - scale)
    step = Decimal(1).scaleb(-scale)
    return _typed("number", null, multipleOf=float(step), exclusiveMinimum=-most, exclusiveMaximum=most)


def boolean(*, null: bool = True) -> dict[str, Any]:
    """Return the schema of a boolean."""
    return _typed("boolean", null)


def one_of(*values: str, null: bool = True) -> dict[str, Any]:
    """Return the schema of a string with a fixed set of values."""
    return _typed("string", null, enum=[*values, *([None] if null else [])])


def array(of: Mapping[str, Any], *, null: bool = True) -> dict[str, Any]:
    """Return the schema of an array.

    Args:
        of: the schema of each item.
        null: allow null instead of an array.
    """
    return _typed("array", null, items=dict(of))


def obj(
    properties: Mapping[str, Mapping[str, Any]], *, null: bool = False, required: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the schema of an object; properties that it does not name are allowed.

    Args:
        properties: schemas by the names of properties.
        null: allow null instead of an object; a stream's schema is not nullable.
        required: names of properties that have to be there.
    """
    members = {name: dict(schema) for name, schema in properties.items()}
    return _typed("object", null, properties=members, required=list(required) or None)


def _typed(kind: str, null: bool, **keywords: Any) -> dict[str, Any]:
    rest = {name: value for name, value in keywords.items() if value is not None}
    return {"type": ["null", kind] if null else kind, **rest}
