"""Inference of a stream's schema from its first records.

Each of these records is valid, and only types are inferred. All properties allow null and none is required, because
other records can lack them. A property that is null in all records becomes a string.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import islice
from typing import Any

import msgspec

from balog.common.errors import BalogError
from balog.tap.errors import SchemaError
from balog.tap.json_schema.formats import is_date
from balog.tap.json_schema.keywords import rebuilt
from balog.tap.records.plain import Unfit, time_text
from balog.tap.records.times import is_date_time
from balog.tap.schema.references import nullable

MOST = 1000


def infer(records: Iterable[Mapping[str, Any]], most: int = MOST, keys: Iterable[str] = ()) -> dict[str, Any]:
    """Return the schema of records.

    Strings that are all RFC 3339 date-times, or all dates, get that format. Records can have ``datetime``, ``date``,
    ``Decimal``, ``UUID`` and ``bytes``; the schema is that of their JSON form.

    Args:
        records: of one stream.
        most: how many of them to read, from the first.
        keys: properties that every record has and that are never null.

    Raises:
        SchemaError: there are no records, or one is not an object, has no form in JSON, or lacks a key.
    """
    from balog.registry.inference import Inference  # the registry is slow to import

    seen = Inference({"date-time": is_date_time, "date": is_date})
    encode = msgspec.json.Encoder(decimal_format="number", enc_hook=_unfit_as_null).encode
    keys = list(keys)
    for record in islice(records, most):
        try:
            if not isinstance(record, Mapping):
                raise TypeError(f"expected an object; found {type(record).__name__}")
            seen.add(
                encode({name: time_text(value) if type(value) is datetime else value for name, value in record.items()})
            )
        except (TypeError, ValueError, RecursionError, BalogError) as error:
            raise SchemaError(f"record {seen.count + 1} can't be one: {error}") from None
        absent = [key for key in keys if record.get(key) is None]
        if absent:
            raise SchemaError(f"record {seen.count} has no {absent[0]!r}, which is a key")
    if not seen.count:
        raise SchemaError("there are no records to infer it from; declare a schema")
    schema = _widened(seen.draft())
    properties = schema.setdefault("properties", {})
    for key in keys:
        properties[key] = {**properties[key], "type": _without_null(properties[key]["type"])}
    return {**schema, "type": "object"}


def _unfit_as_null(value: Any) -> None:
    if not isinstance(value, Unfit):
        raise TypeError(f"Encoding objects of type {type(value).__name__} is unsupported")


def _widened(schema: Any) -> Any:
    """Allow null at all levels of an inferred schema, and remove what holds only for these records."""
    if not isinstance(schema, dict):
        return schema
    wide_schema = rebuilt(schema, lambda child, steps: _widened(child))
    wide_schema = {name: value for name, value in wide_schema.items() if name not in ("required", "enum")}
    if wide_schema == {"type": "null"}:
        return {"type": ["null", "string"]}
    return nullable(wide_schema)


def _without_null(kind: Any) -> Any:
    left = [name for name in kind if name != "null"] if isinstance(kind, list) else [kind]
    return left[0] if len(left) == 1 else left
