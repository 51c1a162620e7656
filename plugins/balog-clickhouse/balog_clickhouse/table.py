"""Tables of ClickHouse: their columns, the types of new columns, and a row per event.

The columns are those of ``balog load``'s tables: ``id``, ``timestamp``, ``channel``, ``level``, ``run_id`` and
``application``, then the payload's fields. ``timestamp_us`` is the exact time, in microseconds since the epoch, since a
``DateTime`` has whole seconds only and ends in 2105. ``payload_recovered`` is the JSON text of fields without a column.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

import msgspec

from balog.event import Event

RECOVERED = "payload_recovered"

MOST_COLUMNS = 500
"""Payload fields with a column of their own per table, as in ``balog load``."""

_FACILITY = ("id", "timestamp", "timestamp_us", "channel", "level", "run_id", "application")
_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,119}")  # a dot would make it a nested structure
_HEAD = frozenset({"cls_type"})  # it is the table's name
_TAKEN = frozenset({*_FACILITY, RECOVERED})
_WRAPPED = re.compile(r"(?:Nullable|LowCardinality)\((.*)\)")
_INTEGER = re.compile(r"(U?)Int(8|16|32|64)")
_EXACT = 1 << 53
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)

_encoder = msgspec.json.Encoder()


class Mismatch(ValueError):
    """A value that its column can't hold. The message has its path and type, not the value."""


class Dialect:
    """The SQL that a server version supports.

    Args:
        version: the server's version, such as ``(18, 16)``.

    Attributes:
        timestamp: the type of the column ``timestamp``.
        keyword: the type of strings with few distinct values.
        first, last: the range of ``timestamp``; times outside are clamped to it.
        settings: the settings of every INSERT.
    """

    def __init__(self, version: tuple[int, int]) -> None:
        is_fine = version >= (20, 5)
        self.timestamp = "DateTime64(6, 'UTC')" if is_fine else "DateTime('UTC')"
        self.keyword = "LowCardinality(String)" if version >= (19, 11) else "String"
        self.first = datetime(1900, 1, 1, tzinfo=timezone.utc) if is_fine else _EPOCH
        last = datetime(2299, 12, 31, 23, 59, 59) if is_fine else datetime(2105, 12, 31, 23, 59, 59)
        self.last = last.replace(tzinfo=timezone.utc)
        self._timespec = "microseconds" if is_fine else "seconds"
        # A profile may make the server answer before an INSERT is written.
        self.settings = {"async_insert": "0"} if version >= (21, 11) else {}

    def moment(self, timestamp: datetime) -> str:
        """Return a time as text for the column ``timestamp``."""
        held = min(max(timestamp, self.first), self.last)
        return held.isoformat(" ", self._timespec)[:-6]

    def create(self, database: str, table: str) -> str:
        """Return the statement that creates a table without the payload's columns.

        An event that comes twice has the same sorting key: the engine keeps one row when it merges parts, and a query
        with FINAL returns one row at once.
        """
        text = f"Nullable({self.keyword})" if self.keyword == "String" else "LowCardinality(Nullable(String))"
        columns = [
            "id String",
            f"timestamp {self.timestamp}",
            "timestamp_us Int64",
            f"channel {self.keyword}",
            f"level {text}",
            "run_id Nullable(String)",
            f"application {text}",
            f"{RECOVERED} Nullable(String)",
        ]
        return (
            f"CREATE TABLE IF NOT EXISTS {quoted(database)}.{quoted(table)} ({', '.join(columns)}) "
            "ENGINE = ReplacingMergeTree PARTITION BY toYYYYMM(timestamp) ORDER BY (timestamp, id)"
        )


class Table:
    """An existing table.

    Args:
        columns: the types by column name, as the server reports them.
        keeps_whole: store whole payloads in ``payload_recovered``; for events without a type.

    Attributes:
        room: how many more columns it may get.
    """

    def __init__(self, columns: Mapping[str, str], dialect: Dialect, *, keeps_whole: bool = False) -> None:
        self.columns = dict(columns)
        self._dialect = dialect
        self._keeps_whole = keeps_whole
        self._convert = {name: _converter(kind) for name, kind in columns.items()}
        self.room = MOST_COLUMNS - sum(name not in _TAKEN for name in columns)

    def missing(self, payload: Mapping[str, Any]) -> list[str]:
        """Return the fields of a payload that need a new column."""
        if self._keeps_whole or self.room <= 0:
            return []
        known = self.columns
        names = [
            name
            for name, value in payload.items()
            if name not in known and value is not None and name not in _HEAD and _FIELD.fullmatch(name)
        ]
        return [name for name in names if name not in _TAKEN][: self.room]

    def row(self, event: Event) -> bytes:
        """Return an event as a line of JSONEachRow.

        Raises:
            Mismatch: a value does not fit its column's type.
            EventError: the payload can't be read.
        """
        header = event.header
        context = header.context
        row: dict[str, Any] = {
            "id": header.id,
            "timestamp": self._dialect.moment(header.timestamp),
            "timestamp_us": (header.timestamp - _EPOCH) // _MICROSECOND,
            "channel": header.channel,
            "level": event.level,
        }
        for name in ("run_id", "application"):
            if (value := context.get(name)) is not None:
                row[name] = value if isinstance(value, str) else _json(value)
        if self._keeps_whole:
            row[RECOVERED] = bytes(event.raw_payload).decode()
            return _encoder.encode(row)
        recovered: dict[str, Any] = {}
        for name, value in event.payload.items():
            if value is None or name in _HEAD:
                continue
            convert = None if name in _TAKEN else self._convert.get(name)
            if convert is None:
                recovered[name] = value
                continue
            try:
                row[name] = convert(value)
            except Mismatch as error:
                raise Mismatch(f"$.payload.{name}: {error}, and the column is {self.columns[name]}") from None
        if recovered:
            row[RECOVERED] = _json(recovered)
        return _encoder.encode(row)


def column_of_value(value: Any) -> str:
    """Return the column type for a field without a schema, by its first value.

    A number becomes a double, since JSON does not distinguish 1 from 1.0, unless it is an integer that a double can't
    hold.
    """
    if isinstance(value, bool):
        return "Nullable(UInt8)"
    if isinstance(value, float) or (isinstance(value, int) and abs(value) <= _EXACT):
        return "Nullable(Float64)"
    if isinstance(value, int) and -(1 << 63) <= value < 1 << 63:
        return "Nullable(Int64)"
    return "Nullable(String)"


def column_of_schema(schema: Any) -> str:
    """Return the column type for a property's JSON Schema. Objects and lists become JSON text."""
    kinds = schema.get("type") if isinstance(schema, dict) else None
    listed = kinds if isinstance(kinds, list) else [kinds]
    types = {kind for kind in listed if isinstance(kind, str)} - {"null"}
    if types == {"integer"}:
        return "Nullable(Int64)"
    if types and types <= {"integer", "number"}:
        return "Nullable(Float64)"
    return "Nullable(UInt8)" if types == {"boolean"} else "Nullable(String)"


def quoted(name: str) -> str:
    """Return an identifier in quotes."""
    return "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"


def _converter(kind: str) -> Callable[[Any], Any]:
    while wrapped := _WRAPPED.fullmatch(kind):
        kind = wrapped[1]
    if kind == "String":
        return lambda value: value if isinstance(value, str) else _json(value)
    if kind in ("Float64", "Float32"):
        return _double
    if kind == "Bool":
        return _boolean
    if integer := _INTEGER.fullmatch(kind):
        bits = int(integer[2])
        least, most = (0, (1 << bits) - 1) if integer[1] else (-(1 << bits - 1), (1 << bits - 1) - 1)
        return lambda value: _whole(value, least, most)
    return lambda value: value  # a column that users added: the server checks the value


def _double(value: Any) -> Any:
    if isinstance(value, float):
        return value
    if isinstance(value, bool) or not isinstance(value, int):
        raise Mismatch(f"is {_word(value)}")
    if abs(value) > _EXACT and float(value) != value:
        raise Mismatch("is an integer that no double holds exactly")
    return value


def _whole(value: Any, least: int, most: int) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int):  # the server would truncate fractions, and let integers overflow
        raise Mismatch(f"is {_word(value)}")
    if not least <= value <= most:
        raise Mismatch("is out of its range")
    return int(value)


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Mismatch(f"is {_word(value)}")
    return value


def _word(value: Any) -> str:
    words = {bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list", dict: "an object"}
    return words.get(type(value), "something else")


def _json(value: Any) -> str:
    try:
        return _encoder.encode(value).decode()
    except OverflowError:  # an integer of more than 64 bits
        import json

        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
