"""Choose the Parquet types of a stream's SCHEMA, and convert JSON values to them.

What has one type in the SCHEMA gets the type of Parquet that holds it: 64-bit integers, doubles, decimals where the
SCHEMA says how many digits (``multipleOf``, or the Meltano SDK's ``x-singer.decimal``), timestamps in UTC with
microseconds, dates, structs and lists. Anything else is kept as JSON text, and the column says so in its metadata.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec
import pyarrow

from balog.singer.batch.columns import Column, column_of

JSON_MARK = {b"balog": b"json"}
"""The metadata of a column whose text is JSON."""

_DATE_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)
_FIRST = (datetime.min.replace(tzinfo=timezone.utc) - _EPOCH) // _MICROSECOND
_LAST = (datetime.max.replace(tzinfo=timezone.utc) - _EPOCH) // _MICROSECOND
_MAX_DEPTH = 20

_encode = msgspec.json.Encoder(decimal_format="number").encode


class ParquetType(NamedTuple):
    """A column's type in Arrow, and the conversion of a JSON value (with decimals for fractions) to it.

    ``convert`` raises ``ValueError`` for a value that the type can't hold without loss.
    """

    type: Any
    convert: Callable[[Any], Any]
    is_json: bool = False


def parquet_type_of(column: Column, widened: str | None, depth: int = 0) -> ParquetType:
    """Return the type of a column; ``widened`` is ``text`` or ``json`` after a value did not fit."""
    if widened == "text":
        return text_kind()
    if widened == "json" or column.type is None or depth > _MAX_DEPTH:
        return ParquetType(pyarrow.string(), _json, is_json=True)
    schema = column.schema
    if column.type == "string":
        return _string_kind(schema)
    if column.type == "number":
        scale = _scale(schema.get("multipleOf"))
        if scale is None:
            return ParquetType(pyarrow.float64(), _double)
        return ParquetType(pyarrow.decimal128(38, scale), _decimal(38, scale))
    if column.type == "integer":
        return ParquetType(pyarrow.int64(), _integer)
    if column.type == "boolean":
        return ParquetType(pyarrow.bool_(), _boolean)
    nested = _struct_kind(schema, depth) if column.type == "object" else _list_kind(schema, depth)
    return nested or ParquetType(pyarrow.string(), _json, is_json=True)


def text_kind() -> ParquetType:
    """Return the type of plain text."""
    return ParquetType(pyarrow.string(), _text)


def _string_kind(schema: Mapping[str, Any]) -> ParquetType:
    format = schema.get("format")
    if format == "date-time":
        return ParquetType(pyarrow.timestamp("us", "UTC"), _timestamp)
    if format == "date":
        return ParquetType(pyarrow.date32(), _date)
    if format in ("x-singer.decimal", "singer.decimal"):
        precision, scale = schema.get("precision"), schema.get("scale", 0)
        if isinstance(precision, int) and isinstance(scale, int) and 0 <= scale <= precision <= 38 and precision:
            convert = _decimal(precision, scale)
            return ParquetType(pyarrow.decimal128(precision, scale), lambda value: convert(_decimal_text(value)))
    return text_kind()


def _struct_kind(schema: Mapping[str, Any], depth: int) -> ParquetType | None:
    properties = schema.get("properties")
    if not isinstance(properties, dict) or not properties:
        return None
    kinds = {name: parquet_type_of(column_of(property), None, depth + 1) for name, property in properties.items()}

    def convert(value: Any) -> Any:
        if not isinstance(value, dict) or value.keys() - kinds.keys():
            raise ValueError
        return {name: None if value.get(name) is None else kind.convert(value[name]) for name, kind in kinds.items()}

    return ParquetType(pyarrow.struct([field_of(name, kind) for name, kind in kinds.items()]), convert)


def _list_kind(schema: Mapping[str, Any], depth: int) -> ParquetType | None:
    items = schema.get("items")
    if not isinstance(items, dict):
        return None
    kind = parquet_type_of(column_of(items), None, depth + 1)

    def convert(value: Any) -> Any:
        if not isinstance(value, list):
            raise ValueError
        return [None if item is None else kind.convert(item) for item in value]

    return ParquetType(pyarrow.list_(field_of("element", kind)), convert)


def field_of(name: str, kind: ParquetType) -> Any:
    """Return the Arrow field of a column, marked if its text is JSON."""
    return pyarrow.field(name, kind.type, metadata=JSON_MARK if kind.is_json else None)


def _json(value: Any) -> str:
    return _encode(value).decode()


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError
    return value


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


def _integer(value: Any) -> int:
    if isinstance(value, Decimal) and value.is_finite() and abs(value) < 2**64 and value == value.to_integral_value():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not -(2**63) <= value < 2**63:
        raise ValueError
    return value


def _double(value: Any) -> float:
    """Return the nearest double, as every JSON reader does; an integer must convert exactly."""
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        raise ValueError
    try:
        number = float(value)
    except OverflowError:
        raise ValueError from None
    if number in (float("inf"), float("-inf")) or (isinstance(value, int) and int(number) != value):
        raise ValueError
    return number


def _decimal(precision: int, scale: int) -> Callable[[Any], Decimal]:
    def convert(value: Any) -> Decimal:
        if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
            raise ValueError
        number = Decimal(value)
        _, digits, exponent = number.as_tuple()
        if not isinstance(exponent, int) or abs(exponent) > 100:
            raise ValueError
        while exponent < -scale and digits and digits[-1] == 0:  # trailing zeros need no decimals
            digits, exponent = digits[:-1], exponent + 1
        if not any(digits):
            return Decimal(0)
        if exponent < -scale or len(digits) + exponent > precision - scale:
            raise ValueError
        return number

    return convert


def _decimal_text(value: Any) -> Decimal:
    if not isinstance(value, str) or not re.fullmatch(r"-?[0-9]{1,40}(\.[0-9]{1,40})?", value):
        raise ValueError
    return Decimal(value)


def _scale(multiple: Any) -> int | None:
    """Return the number of decimals that ``multipleOf`` allows; None if it is not a power of ten."""
    if isinstance(multiple, bool) or not isinstance(multiple, (int, float, Decimal)):
        return None
    number = Decimal(str(multiple))
    if not number.is_finite() or number <= 0:
        return None
    _, digits, exponent = number.normalize().as_tuple()
    if digits != (1,) or not isinstance(exponent, int) or not -37 <= exponent <= 0:
        return None
    return -exponent


def _timestamp(value: Any) -> int:
    if not isinstance(value, str) or not _DATE_TIME.fullmatch(value):
        raise ValueError
    text = value[:10] + "T" + value[11:].upper()
    fraction = re.search(r"\.([0-9]+)", text)
    if fraction:  # Python before 3.11 reads only three or six digits
        text = text.replace(fraction[0], "." + fraction[1].ljust(6, "0"))
    since = (datetime.fromisoformat(text.replace("Z", "+00:00")) - _EPOCH) // _MICROSECOND
    if not _FIRST <= since <= _LAST:  # its UTC time is outside of the years 1 to 9999
        raise ValueError
    return since


def _date(value: Any) -> date:
    if not isinstance(value, str) or not _DATE.fullmatch(value):
        raise ValueError
    return date.fromisoformat(value)
