"""Convert Arrow's values to JSON: text for times and dates, numbers with all digits, base64 for bytes."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import pyarrow
from msgspec import Raw
from pyarrow import compute, types

from balog.singer.batch.columns import Column, column_of, columns_of
from balog.singer.batch.dialects import BatchError


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
    as_it_is = (types.is_boolean, types.is_integer, types.is_null, types.is_string, types.is_large_string)
    make: Callable[[Any], Any] | None = None
    if types.is_floating(type):
        make = _finite
    elif types.is_decimal(type):
        make = "{:f}".format if described.column is not None and described.column.type == "string" else None
    elif types.is_timestamp(type) or types.is_date(type) or types.is_time(type):
        return _times(array, type)
    elif types.is_duration(type):
        array = array.cast(pyarrow.int64())
    elif types.is_binary(type) or types.is_large_binary(type) or types.is_fixed_size_binary(type):
        make = _bytes(described)
    elif types.is_map(type):
        make = _map
    elif not any(fits(type) for fits in as_it_is):
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
    field = array.type.value_field
    items = described.column.schema.get("items") if described.column else None
    values = values_of(array.flatten(), Describe(described.name, field.type, is_json(field), column_of(items)))
    lists, start = [], 0
    for length in compute.list_value_length(array).to_pylist():
        lists.append(None if length is None else values[start : start + length])
        start += length or 0
    return lists


def _json(text: str, name: str) -> Raw:
    data = text.encode()
    try:
        msgspec.json.decode(data, type=Raw)
    except msgspec.DecodeError:
        raise BatchError(f"column {name}: is marked as JSON and holds text that is not JSON") from None
    return Raw(data)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _times(array: Any, type: Any) -> list[str | None]:
    """Return timestamps, dates or times as text of RFC 3339, without a fraction of zeros."""
    if types.is_timestamp(type):
        array = array.cast(pyarrow.timestamp(type.unit))  # in UTC, if it has a zone
    elif types.is_date(type):
        array = array.cast(pyarrow.date32())
    zone = "Z" if types.is_timestamp(type) and type.tz is not None else ""
    texts = compute.replace_substring_regex(array.cast(pyarrow.string()), r"\.0+$", "")
    values: list[str | None] = compute.replace_substring(texts, " ", "T").to_pylist()
    if not types.is_time(type) and any(text and (text[4:5] != "-" or text[:4] == "0000") for text in values):
        raise BatchError("has a date outside of the years 1 to 9999")
    return [text and text + zone for text in values]


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
