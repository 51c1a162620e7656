"""Convert Arrow's values to JSON: text for times and dates, numbers with all digits, base64 for bytes."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

from balog.singer.batch.columns import Column, column_of, columns_of
from balog.singer.batch.dialects import BatchError

_EPOCH_DAYS = date(1970, 1, 1).toordinal()
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}


class Describe(NamedTuple):
    """A column to read.

    Attributes:
        type: Arrow's.
        is_json: its text is JSON, as ``parquet_types`` writes it.
        column: its column in the stream's SCHEMA; None without one.
    """

    name: str
    type: Any
    is_json: bool = False
    column: Column | None = None

    @property
    def leaves_out_nulls(self) -> bool:
        """Whether the SCHEMA forbids null."""
        return self.column is not None and not self.column.is_nullable


def is_json(field: Any) -> bool:
    """Return whether the text of an Arrow field is JSON, as ``parquet_types`` marks it."""
    return bool(field.metadata and field.metadata.get(b"balog") == b"json")


def values_of(array: Any, described: Describe) -> list[Any]:
    """Return a column's values as msgspec encodes them to JSON; None for null.

    Raises:
        BatchError: a type without a JSON form, or a value that does not match its column.
    """
    import pyarrow
    from pyarrow import types

    type = array.type
    if isinstance(type, pyarrow.BaseExtensionType):
        array, type = array.storage, array.storage.type
    if types.is_dictionary(type):
        array = array.dictionary_decode()
        type = array.type
    if described.is_json:
        return [None if text is None else _json(text, described.name) for text in array.to_pylist()]
    if types.is_struct(type):
        return _structs(array, described)
    if types.is_list(type) or types.is_large_list(type) or types.is_fixed_size_list(type):
        return _lists(array, described)
    return _plain(array, type, described)


def _plain(array: Any, type: Any, described: Describe) -> list[Any]:
    import pyarrow
    from pyarrow import types

    make: Callable[[Any], Any] | None
    as_it_is = (types.is_boolean, types.is_integer, types.is_null, types.is_string, types.is_large_string)
    if any(fits(type) for fits in as_it_is):
        make = None
    elif types.is_floating(type):
        make = _finite
    elif types.is_decimal(type):
        is_text = described.column is not None and described.column.type == "string"
        make = _decimal_text if is_text else None
    elif types.is_timestamp(type):
        array, make = array.cast(pyarrow.int64()), _timestamp(type.unit, type.tz is not None)
    elif types.is_date(type):
        array, make = array.cast(pyarrow.date32()).cast(pyarrow.int32()), _date
    elif types.is_time(type):
        number = pyarrow.int32() if types.is_time32(type) else pyarrow.int64()
        array, make = array.cast(number), _time(type.unit)
    elif types.is_duration(type):
        array, make = array.cast(pyarrow.int64()), None
    elif types.is_binary(type) or types.is_large_binary(type) or types.is_fixed_size_binary(type):
        make = _bytes(described)
    elif types.is_map(type):
        make = _map
    else:
        raise BatchError(f"column {described.name}: JSON has nothing for Parquet's {type}")
    values: list[Any] = array.to_pylist()
    return values if make is None else [None if value is None else make(value) for value in values]


def _structs(array: Any, described: Describe) -> list[Any]:
    schema = described.column.schema if described.column else {}
    columns = columns_of(schema)
    fields = [Describe(field.name, field.type, is_json(field), columns.get(field.name)) for field in array.type]
    parts = [values_of(part, field) for part, field in zip(array.flatten(), fields)]
    rows = list(zip(*parts)) if parts else [()] * len(array)
    return [
        {field.name: value for field, value in zip(fields, row) if value is not None or not field.leaves_out_nulls}
        if is_there
        else None
        for is_there, row in zip(array.is_valid().to_pylist(), rows)
    ]


def _lists(array: Any, described: Describe) -> list[Any]:
    import pyarrow.compute

    field = array.type.value_field
    items = described.column.schema.get("items") if described.column else None
    values = values_of(array.flatten(), Describe(described.name, field.type, is_json(field), column_of(items)))
    made, start = [], 0
    for length in pyarrow.compute.list_value_length(array).to_pylist():
        made.append(None if length is None else values[start : start + length])
        start += length or 0
    return made


def _json(text: str, name: str) -> Raw:
    data = text.encode()
    try:
        msgspec.json.decode(data, type=Raw)
    except msgspec.DecodeError:
        raise BatchError(f"column {name}: is marked as JSON and holds text that is not JSON") from None
    return Raw(data)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _decimal_text(value: Decimal) -> str:
    return format(value, "f")


def _timestamp(unit: str, has_zone: bool) -> Callable[[int], str]:
    per_second, digits, zone = _PER_SECOND[unit], _DIGITS[unit], "Z" if has_zone else ""

    def make(value: int) -> str:
        seconds, fraction = divmod(value, per_second)
        days, second = divmod(seconds, 86_400)
        rest = f".{fraction:0{digits}d}" if fraction else ""
        return f"{_date(days)}T{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}{rest}{zone}"

    return make


def _date(days: int) -> str:
    try:
        return date.fromordinal(_EPOCH_DAYS + days).isoformat()
    except (ValueError, OverflowError):
        raise BatchError("has a date outside of the years 1 to 9999") from None


def _time(unit: str) -> Callable[[int], str]:
    per_second, digits = _PER_SECOND[unit], _DIGITS[unit]

    def make(value: int) -> str:
        second, fraction = divmod(value, per_second)
        rest = f".{fraction:0{digits}d}" if fraction else ""
        return f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}{rest}"

    return make


def _bytes(described: Describe) -> Callable[[bytes], str]:
    column = described.column
    if column is None or column.type != "string" or "contentEncoding" in column.schema:
        return lambda value: base64.b64encode(value).decode()

    def text(value: bytes) -> str:
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise BatchError(
                f"column {described.name} holds bytes that are no text; say contentEncoding: base64 in its SCHEMA"
            ) from None

    return text


def _map(pairs: Any) -> Any:
    if all(isinstance(key, str) for key, _ in pairs):
        return dict(pairs)
    return [list(pair) for pair in pairs]
