"""Names of columns and nested fields that are like an unknown one, the same for both engines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from balog.analytics.embedded.values import Kind
from balog.errors import ConfigError
from balog.suggestions import nearest, suggest


class UnknownColumn(ConfigError):
    """A statement names a column or field that does not exist.

    Args:
        name: as the statement has it, with the names before it.
        where: its position.
        tables: columns that it may be.
    """

    def __init__(self, name: str, where: str, tables: Iterable[Mapping[str, Kind]]) -> None:
        self.name, self.where, self.tables = name, where, list(tables)
        super().__init__(f"no column {name!r:.200}{where}{_suggestion(name, self.tables)}", "SQL")


def _suggestion(name: str, tables: Iterable[Mapping[str, Kind]]) -> str:
    """Return the end of the error: the nearest of all columns and nested fields, or some columns."""
    known = {column.lower(): column for columns in tables for column in columns}
    shown = sorted(known.values())
    for columns in tables:
        for column, kind in columns.items():
            for path in _fields(column, kind):
                known.setdefault(path.rpartition(".")[2].lower(), path)
                known.setdefault(path.lower(), path)
    last = name.rpartition(".")[2]
    near = nearest(last, known) or nearest(name, known)
    return f"; did you mean {known[near]!r}?" if near is not None else suggest(last, shown, limit=20)


def _fields(path: str, kind: Kind) -> Iterator[str]:
    """Yield the paths of the fields in a type."""
    while isinstance(kind, dict) and kind["type"] in ("array", "map"):
        kind = kind.get("elementType", kind.get("valueType"))
    if isinstance(kind, dict):
        for field in kind["fields"]:
            inner = f"{path}.{field['name']}"
            yield inner
            yield from _fields(inner, field["type"])
