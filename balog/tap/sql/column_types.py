"""For each type of column: its JSON Schema, how it is selected, and how a value of the state is compared with it."""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, datetime, timezone, tzinfo
from decimal import Decimal
from typing import Any
from uuid import UUID

from sqlalchemy import Text, cast, func, literal, type_coerce, types

from balog.tap.records.plain import Unfit
from balog.tap.records.times import from_iso
from balog.tap.schema.types import array, boolean, date_time, integer, number, string
from balog.tap.schema.types import date as date_type

ANY_JSON = {"type": ["null", "object", "array", "string", "number", "boolean"]}
_BITS = {"TINYINT": 8, "SMALLINT": 16, "MEDIUMINT": 24, "INTEGER": 32, "SMALLINTEGER": 16}
"""The sizes of the integers that are smaller than 64 bits, by the name of SQLAlchemy's class."""

_SHAPES = ("point", "linestring", "polygon")
GEOMETRIES = ("geometry", "geometrycollection", *_SHAPES, *(f"multi{shape}" for shape in _SHAPES))
"""Spatial types of MySQL and MariaDB, which SQLAlchemy does not know."""


class Geometry(types.UserDefinedType[str]):
    """A spatial type of MySQL and MariaDB."""

    cache_ok = True


class Declared(types.UserDefinedType[Any]):
    """A type as the table declares it. SQLAlchemy converts none of its values."""

    cache_ok = True

    def __init__(self, name: str) -> None:
        self.name = name

    def get_col_spec(self, **_: Any) -> str:
        """Return the declared type."""
        return self.name


class Nested(types.JSON):
    """A list, a map or a struct of DuckDB."""


@dataclass(frozen=True)
class ColumnType:
    """How a column is read.

    Attributes:
        schema: the JSON Schema of its values.
        select: returns the expression that is selected.
        bind: returns the expression for a value: one that was selected, or a parsed one.
        convert: changes a selected value that is not null; None if the value is right.
        is_ordered: its values can be compared as the state compares them, so it can be a replication key.
        is_naive: its values are times without a zone.
        parse: returns the JSON of a state as a value for ``bind``.
        order: returns what a replication key is compared and sorted by; None for the column itself.
        is_exact: the JSON of a value identifies it.
    """

    schema: dict[str, Any]
    select: Callable[[Any], Any]
    bind: Callable[[Any], Any]
    convert: Callable[[Any], Any] | None = None
    is_ordered: bool = False
    is_naive: bool = False
    parse: Callable[[Any], Any] = lambda value: value
    order: Callable[[Any], Any] | None = None
    is_exact: bool = True


def column_type(kind: types.TypeEngine[Any], dialect: str, zone: tzinfo, *, null: bool = True) -> ColumnType:
    """Return how a column of a type is read.

    Types that Python has no exact value for (intervals, times of day, enums, networks, ranges …) become the text that
    the database makes of them.

    Args:
        kind: the reflected type.
        dialect: SQLAlchemy's name of the database.
        zone: the zone of times without one.
        null: the column may be null.
    """
    while type(kind).__name__ == "DOMAIN":
        kind = kind.data_type  # type: ignore[attr-defined]
    if isinstance(kind, types.Boolean):
        return _plain(kind, boolean(null=null))
    if isinstance(kind, types.Integer):
        return _plain(kind, _integer(kind, dialect, null), is_ordered=True)
    if isinstance(kind, (types.Numeric, types.Float)):
        return _number(kind, dialect, null)
    if isinstance(kind, (types.DateTime, types.Date)):
        return _time_type(kind, dialect, zone, null)
    if isinstance(kind, types.Uuid):
        return _plain(kind, string(null=null, format="uuid"), _uuid if kind.as_uuid else str)
    if isinstance(kind, (types.LargeBinary, types.BINARY, types.VARBINARY)):
        return _plain(kind, {**string(null=null), "contentEncoding": "base64"}, _bytes)
    if isinstance(kind, types.JSON):
        return _plain(kind, dict(ANY_JSON), select=_to_json if isinstance(kind, Nested) else None)
    if isinstance(kind, types.ARRAY):
        return _array(kind, dialect, zone, null)
    if isinstance(kind, types.String) and not isinstance(kind, types.Enum) and type(kind).__name__ != "SET":
        is_limited = isinstance(kind.length, int)
        return _plain(kind, string(null=null, max_length=kind.length if is_limited else None))
    return _text(kind, string(null=null), dialect)


def _number(kind: Any, dialect: str, null: bool) -> ColumnType:
    if isinstance(kind, types.FLOAT if dialect == "mysql" else types.REAL):
        return ColumnType(number(null=null), _wide, lambda value: literal(_single(value)), _shortest, True)
    if isinstance(kind, types.Float):  # without SQLAlchemy's Decimal of ten digits
        return _plain(types.Double(), number(null=null), float, is_ordered=True)
    return _plain(kind, number(null=null), _decimal, is_ordered=True)


def _time_type(kind: Any, dialect: str, zone: tzinfo, null: bool) -> ColumnType:
    if dialect in ("postgresql", "duckdb"):
        return _postgres_time(kind, zone, null)
    if isinstance(kind, types.Date):
        return _plain(kind, date_type(null=null), _date, is_ordered=True)
    if getattr(kind, "timezone", False) or (dialect == "mysql" and isinstance(kind, types.TIMESTAMP)):
        return _plain(kind, date_time(null=null), _aware(dialect), is_ordered=True)
    convert = None if str(zone) == "UTC" else lambda value: _time(value).replace(tzinfo=zone)
    read = _plain(kind, date_time(null=null), lambda value: _naive(value, zone), convert, is_ordered=True)
    return replace(read, is_naive=True)


def _plain(
    kind: types.TypeEngine[Any],
    schema: dict[str, Any],
    parse: Callable[[Any], Any] | None = None,
    convert: Callable[[Any], Any] | None = None,
    *,
    is_ordered: bool = False,
    select: Callable[[Any], Any] | None = None,
) -> ColumnType:
    def bind(value: Any) -> Any:
        return literal(value if parse is None else parse(value), kind)

    return ColumnType(schema, select or (lambda column: type_coerce(column, kind)), bind, convert, is_ordered)


def _postgres_time(kind: Any, zone: tzinfo, null: bool) -> ColumnType:
    """Return how a date or time is read that Python may not have: as text, since it can be infinite or BC."""
    is_date, is_naive = isinstance(kind, types.Date), not getattr(kind, "timezone", False)
    is_local = is_naive and not is_date and str(zone) != "UTC"

    def convert(text: str) -> Any:
        if text in ("infinity", "-infinity"):
            return float(text)
        if (match := _POSTGRES_TIME(text)) is None:
            return Unfit(text, "expected a year from 1 to 9999")
        if is_local:
            return _time(text).replace(tzinfo=zone)
        return text if is_date else f"{match[1]}T{match[2]}Z"

    def parse(value: Any) -> str:
        text = str(value)[:10] if is_date else str(value)
        return _naive(text, zone).isoformat() if is_local else text

    return ColumnType(
        date_type(null=null) if is_date else date_time(null=null),
        lambda column: cast(column, Text()),
        lambda value: cast(literal(value, Text()), kind),
        convert,
        is_ordered=True,
        is_naive=is_naive and not is_date,
        parse=parse,
    )


_POSTGRES_TIME = re.compile(r"(\d{4}-\d\d-\d\d)(?: (\d\d:\d\d:\d\d(?:\.\d+)?)(?:\+00)?)?").fullmatch


def _text(kind: types.TypeEngine[Any], schema: dict[str, Any], dialect: str) -> ColumnType:
    if dialect == "mysql":
        return _mysql_text(kind, schema)
    has_type = not isinstance(kind, types.NullType)
    return ColumnType(
        schema,
        _printed_address if type(kind).__name__ == "INET" else lambda column: cast(column, Text()),
        lambda value: cast(literal(value, Text()), kind) if has_type else literal(value),
    )


def _printed_address(column: Any) -> Any:
    """Return an address without a prefix of all its bits, which PostgreSQL's cast to text has."""
    return func.regexp_replace(cast(column, Text()), "^([^:]+)/32$|/128$", r"\1")


def _mysql_text(kind: Any, schema: dict[str, Any]) -> ColumnType:
    """Return how to read a type that MySQL sorts as text; BIT, ENUM, SET and geometry have rules of their own."""
    select: Callable[[Any], Any] = lambda column: cast(column, Text())  # noqa: E731
    bind: Callable[[Any], Any] = literal
    name = type(kind).__name__
    if isinstance(kind, Geometry):
        select = func.ST_AsText
    elif name == "BIT":
        select = lambda column: func.lpad(func.bin(column), kind.length or 1, "0")  # noqa: E731
        bind = lambda value: literal(int(value, 2))  # noqa: E731
    elif name == "ENUM":  # sorted by the order of the words, and compared with a text as a text
        bind = lambda value: literal(kind.enums.index(value) + 1 if value in kind.enums else 0)  # noqa: E731
    elif name == "SET":
        words = {word: 1 << index for index, word in enumerate(kind.values)}
        bind = lambda value: literal(sum(words.get(word, 0) for word in value.split(",")))  # noqa: E731
    return ColumnType(schema, select, bind)


def _array(kind: types.ARRAY[Any], dialect: str, zone: tzinfo, null: bool) -> ColumnType:
    items = column_type(kind.item_type, dialect, zone).schema
    select: Callable[[Any], Any] = lambda column: column  # noqa: E731
    if dialect == "postgresql":
        # The driver knows arrays of few types. In PostgreSQL's JSON a time has a zone only if its type has one, and any
        # array may have arrays in it.
        items = string() if "format" in items else dict(items)
        items["type"] = [*items["type"], *(["array"] if "array" not in items["type"] else [])]
        select = _to_json
    return ColumnType(array(items, null=null), select, lambda value: literal(value, kind))


def _to_json(column: Any) -> Any:
    return type_coerce(func.to_json(column), types.JSON())


def _integer(kind: types.Integer, dialect: str, null: bool) -> dict[str, Any]:
    if dialect == "duckdb":
        return integer(null=null)
    limit = 1 << _BITS.get(type(kind).__name__.upper(), 64) - 1
    if getattr(kind, "unsigned", False):
        return integer(null=null, minimum=0, maximum=2 * limit - 1)
    return integer(null=null, minimum=-limit, maximum=limit - 1)


def _decimal(value: Any) -> Decimal:
    return value if isinstance(value, Decimal) else Decimal(str(value))


def _wide(column: Any) -> Any:
    """Return a number of 32 bits as one of 64: as text MySQL rounds it to 6 digits."""
    return cast(column, types.Double())


def _single(value: Any) -> float:
    """Return the number of 32 bits that is the nearest to a value, which the column has."""
    nearest: float = struct.unpack("f", struct.pack("f", value))[0]
    return nearest


def _shortest(value: float) -> float:
    """Return the number with the fewest digits that is the same in 32 bits."""
    shorts = (float(f"{value:.{digits}g}") for digits in range(6, 18))
    return next((short for short in shorts if _single(short) == value), value)  # none is equal to NaN


def _time(value: Any) -> datetime:
    return value if isinstance(value, datetime) else from_iso(str(value))


def _naive(value: Any, zone: tzinfo) -> datetime:
    when = _time(value)
    return when if when.tzinfo is None else when.astimezone(zone).replace(tzinfo=None)


def _aware(dialect: str) -> Callable[[Any], datetime]:
    def parse(value: Any) -> datetime:
        when = _time(value)
        when = when if when.tzinfo else when.replace(tzinfo=timezone.utc)
        return when.astimezone(timezone.utc).replace(tzinfo=None) if dialect == "mysql" else when

    return parse


def _date(value: Any) -> date:
    if isinstance(value, datetime):
        return value.date()
    return value if isinstance(value, date) else date.fromisoformat(str(value)[:10])


def _uuid(value: Any) -> UUID:
    return value if isinstance(value, UUID) else UUID(str(value))


def _bytes(value: Any) -> bytes:
    return base64.b64decode(value) if isinstance(value, str) else bytes(value)
