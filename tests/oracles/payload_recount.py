"""A recount of rows of payload types' tables that knows JSON and nothing of balog's columns, and a table in memory."""

import json
from decimal import Decimal
from typing import Any

from pyspark.sql import types as t

from balog.analytics.tables.column_conversion import Columns
from balog.analytics.tables.shapes import ShapeObserver
from balog.analytics.tables.table_schema import merge, payload_fields


def read(text: str) -> Any:
    return json.loads(text, parse_float=Decimal)


def bare(value: Any) -> Any:
    """Give a value without what holds nothing."""
    if isinstance(value, dict):
        kept = {name: bare(item) for name, item in value.items()}
        return {name: item for name, item in kept.items() if item is not None} or None
    if isinstance(value, list):
        items = [bare(item) for item in value]
        return items if any(item is not None for item in items) else None
    return value


def document(row: dict[str, Any], columns: Any) -> dict[str, Any]:
    """Give what a row's columns hold, as a document again; a column's metadata names its field."""
    found: dict[str, Any] = {}
    for column in columns:
        value = row.get(column.name)  # rows of an earlier batch have fewer columns
        if value is not None:
            field = column.metadata.get("field", column.name)
            assert field not in found, "two columns of one field have a value"
            found[field] = plain(value, column.dataType)
    return found


def plain(value: Any, kind: Any) -> Any:
    if isinstance(kind, t.StructType) and value is not None:
        return document(value, kind.fields)
    if isinstance(kind, t.ArrayType) and value is not None:
        return [plain(item, kind.elementType) for item in value]
    return value


def both(columns: Any, rest: Any) -> Any:
    """Give what columns and ``payload_recovered`` hold together; digits in the latter are those that were written."""
    if isinstance(columns, dict) and isinstance(rest, dict):
        return {**columns, **{name: both(columns.get(name), value) for name, value in rest.items()}}
    if columns is not None and not isinstance(columns, (dict, list)):
        assert isinstance(columns, float)
        assert float(rest) == columns, "the column has another value than the rest"
    return rest


def same(want: Any, got: Any) -> bool:
    if isinstance(want, dict) and isinstance(got, dict):
        return set(want) == set(got) and all(same(item, got[name]) for name, item in want.items())
    if isinstance(want, list) and isinstance(got, list):
        return len(want) == len(got) and all(map(same, want, got))
    if isinstance(want, str) and isinstance(got, (int, float, Decimal)) and not isinstance(got, bool):
        want = read(want)  # a number written as a text, in a column of numbers
    digits = len("".join(map(str, want.as_tuple().digits)).strip("0")) if isinstance(want, Decimal) else 0
    if isinstance(want, Decimal) and isinstance(got, float):
        return float(want) == got and (want == Decimal(got) or digits <= 17)
    if isinstance(want, Decimal) and isinstance(got, Decimal) and digits <= 17:
        return want == got or 0 != float(want) == float(got) < float("inf")  # written again from a double
    if isinstance(want, (int, Decimal)) and isinstance(got, (int, float, Decimal)):
        return want == got and isinstance(want, bool) == isinstance(got, bool)
    return type(want) is type(got) and bool(want == got)


def recount(columns: Any, row: dict[str, Any], payload: str, cls_type: str) -> None:
    """Hold a row against its payload: each value is there, in a column of its own field, and no other one."""
    kept = row["payload_recovered"]
    rest = read(kept) if kept is not None else {}
    want = read(payload)
    got = both(document(row, columns), rest)
    if want.get("cls_type") == cls_type and "cls_type" not in got:  # the table's name says it
        del want["cls_type"]
    assert same(bare(want) or {}, bare(got) or {}), (payload, kept)


class Table:
    """The table of a type in memory: batches grow its columns as the loader does.

    Attributes:
        schema: the table's columns.
        lines: what the last batch changed.
    """

    def __init__(self, cls_type: str) -> None:
        self.cls_type = cls_type
        self.schema: Any = None
        self.lines: list[str] = []

    def load(self, texts: list[str], piece: int = 1000) -> list[tuple[dict[str, Any], str]]:
        """Give rows and payloads; ``piece`` payloads are handed over at a time, to the same columns."""
        watcher = ShapeObserver(self.cls_type, self.schema)
        watcher.observe([text.encode() for text in texts])
        self.schema, self.lines = merge(self.schema, watcher.seen.struct())
        columns = Columns(self.schema, self.cls_type)
        rows: list[dict[str, Any]] = []
        for start in range(0, len(texts), piece):
            some = [text.encode() for text in texts[start : start + piece]]
            made = {name: array.to_pylist() for name, array in columns.arrays(some).items()}
            assert {len(values) for values in made.values()} == {len(some)}
            rows += [{name: made[name][row] for name in made} for row in range(len(some))]
        return list(zip(rows, texts))

    @property
    def columns(self) -> list[Any]:
        return payload_fields(self.schema)
