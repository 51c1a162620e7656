"""Types of SQLite: the declared type decides what is right, a column can have any value, and the rest is ``Unfit``."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from datetime import datetime, timezone, tzinfo
from decimal import Decimal
from typing import Any, NamedTuple

from sqlalchemy import LargeBinary, Text, cast, func, literal, types

from balog.tap.records.plain import Unfit, exact_json, time_text
from balog.tap.records.times import to_date_time
from balog.tap.schema.types import boolean, date, date_time, integer, number, string
from balog.tap.sql.column_types import ANY_JSON, ColumnType


def sqlite_type(name: str, zone: tzinfo, *, null: bool) -> ColumnType:
    """Return how a column of a declared type is read.

    Args:
        name: the declared type, as ``VARCHAR(20)``; empty for none.
        zone: the zone of times without one.
        null: the column may be null.
    """
    words = " ".join(re.sub(r"\([^)]*\)|\b(UN)?SIGNED\b|\bZEROFILL\b", " ", name.upper()).split())
    kind = next(kind for kind in _KINDS if re.fullmatch(kind.names, words))
    convert, parse, by = kind.convert, kind.parse, None
    if convert is _time:
        by = _instant
        convert, parse = lambda value: _time(value, zone), lambda value: _earliest(value, zone)

    def fit(value: Any) -> Any:
        if type(value) is bytes and convert is not _binary:
            return Unfit(value, f"expected {words or 'a value'}, got bytes")
        if isinstance(value, str) and not value.isascii() and _lone_surrogate(value):
            return Unfit(value, "expected a text in UTF-8, got other bytes")
        return convert(value)

    schema = dict(ANY_JSON) if kind.schema is None else kind.schema(null=null)
    is_exact = kind.convert not in (_json, _time)
    return ColumnType(
        schema, lambda column: column, _bound, fit, kind.is_ordered, bool(by), parse=parse, order=by, is_exact=is_exact
    )


_lone_surrogate = re.compile("[\ud800-\udfff]").search


def _same(value: Any) -> Any:
    return value


def _bound(value: Any) -> Any:
    """Return the expression for a value as it is, also a text that is not UTF-8."""
    if isinstance(value, str) and not value.isascii():
        encoded = value.encode("utf-8", "surrogateescape")
        return cast(literal(encoded, LargeBinary()), Text())
    return literal(float(value) if isinstance(value, Decimal) else value, types.NullType())


def _boolean(value: Any) -> Any:
    return value == 1 if value in (0, 1) else value


def _json(value: Any) -> Any:
    try:
        return exact_json(value, int) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return Unfit(value, "expected JSON, got another string")


def _binary(value: Any) -> Any:
    return value if isinstance(value, bytes) else Unfit(value, "expected bytes, got a value of another type")


def _time(value: Any, zone: tzinfo = timezone.utc) -> Any:
    if not isinstance(value, str) or (moment := to_date_time(value)) is None:
        return value
    if str(zone) == "UTC" or re.search(r"([Zz]|UTC|GMT|[+-]\d\d:?(\d\d)?)\s*$", value[10:]):
        return moment
    seconds, dot, fraction = moment[:-1].partition(".")
    return time_text(datetime.fromisoformat(seconds).replace(tzinfo=zone))[:-1] + dot + fraction + "Z"


def _instant(column: Any) -> Any:
    """Return a time as a number, because texts of times in several forms are not sorted as the times.

    Other values sort after all times, so they are read again in each run.
    """
    return func.coalesce(func.julianday(column), column)


def _earliest(value: Any, zone: tzinfo) -> str:
    """Return the time of a state in UTC or the zone of naive times, whichever is less: a column can have both."""
    moment = to_date_time(str(value)) or str(value)
    seconds, dot, fraction = moment[:-1].partition(".")
    local = datetime.fromisoformat(seconds).replace(tzinfo=timezone.utc).astimezone(zone)
    return min(moment[:-1], local.replace(tzinfo=None).isoformat() + dot + fraction)


class _Kind(NamedTuple):
    """How the types with some names are read.

    Attributes:
        names: a pattern of the declared names, in capitals and without arguments.
        schema: makes the schema; None for any JSON.
        convert: returns a value of the column as one of the schema, or ``Unfit``, or unchanged.
        is_ordered: the column can be a replication key.
        parse: returns the value of a state as one of the column.
    """

    names: str
    schema: Callable[..., dict[str, Any]] | None
    convert: Callable[[Any], Any] = _same
    is_ordered: bool = False
    parse: Callable[[Any], Any] = _same


_KINDS = (
    _Kind("BOOL(EAN)?", boolean, _boolean),
    _Kind(r"(BIG |TINY|SMALL|MEDIUM|BIG)?INT(EGER)?\d*|(BIG|SMALL)?SERIAL", integer, is_ordered=True),
    _Kind(r"REAL|FLOAT\d*|DOUBLE( PRECISION)?|NUM(ERIC|BER)?|DEC(IMAL)?", number, is_ordered=True),
    _Kind(r"(SMALL)?DATETIME.*|TIMESTAMP.*", date_time, _time, True),
    _Kind("DATE", date, is_ordered=True, parse=lambda value: str(value)[:10]),
    _Kind("UUID|GUID|UNIQUEIDENTIFIER", lambda null: string(null=null, format="uuid")),
    _Kind("JSONB?", None, _json),
    _Kind(
        r"\w*BLOB|(VAR|LONG )?BINARY( VARYING| LARGE OBJECT)?|BYTEA",
        lambda null: {**string(null=null), "contentEncoding": "base64"},
        _binary,
        parse=base64.b64decode,
    ),
    _Kind(".*", string),
)
"""The first kind whose pattern matches the whole name applies; the last one is text."""
