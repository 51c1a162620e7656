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
    """Return the schema of a string; some targets derive VARCHAR(``max_length``) from ``max_length``, in characters."""
    return _typed("string", null, maxLength=max_length, format=format)


def date_time(*, null: bool = True) -> dict[str, Any]:
    """Return the schema of an RFC 3339 date-time (``2026-11-22T08:00:00Z``)."""
    return string(null=null, format="date-time")


def date(*, null: bool = True) -> dict[str, Any]:
    """Return the schema of a date (``2026-11-22``)."""
    return string(null=null, format="date")


def integer(*, null: bool = True, minimum: int | None = None, maximum: int | None = None) -> dict[str, Any]:
    """Return the schema of an integer; some targets choose the width of their integers from the bounds."""
    return _typed("integer", null, minimum=minimum, maximum=maximum)


def number(*, null: bool = True, minimum: float | None = None, maximum: float | None = None) -> dict[str, Any]:
    """Return the schema of a number."""
    return _typed("number", null, minimum=minimum, maximum=maximum)


def decimal(precision: int, scale: int, *, null: bool = True) -> dict[str, Any]:
    """Return the schema of a decimal with ``precision`` digits, ``scale`` of them after the decimal point.

    The form is that of PipelineWise's taps: ``multipleOf`` for the scale, exclusive bounds for the precision.
    Validators that use floats reject 1.1 as a multiple of 0.01; for such targets, use ``number()``.
    """
    if not 0 <= scale <= precision <= 100 or precision == 0:
        raise ValueError("want a precision of 1 to 100 digits, and a scale of 0 to the precision")
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
    """Return the schema of an array of ``items``."""
    return _typed("array", null, items=dict(of))


def obj(
    properties: Mapping[str, Mapping[str, Any]], *, null: bool = False, required: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the schema of an object with these properties; others are allowed. A stream's schema is not nullable."""
    members = {name: dict(schema) for name, schema in properties.items()}
    return _typed("object", null, properties=members, required=list(required) or None)


def _typed(kind: str, null: bool, **keywords: Any) -> dict[str, Any]:
    rest = {name: value for name, value in keywords.items() if value is not None}
    return {"type": ["null", kind] if null else kind, **rest}
