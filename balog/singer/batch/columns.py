"""The columns of a stream's SCHEMA, for formats that need their types: CSV and Parquet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from balog.singer.batch.dialects import BatchError

_MAX_COLUMNS = 10_000

_TYPES = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})


class Column(Struct, frozen=True):
    """One property of a JSON Schema.

    Attributes:
        types: what its values may be, without ``null``; empty when the schema does not say.
        is_nullable: null is a value; also when the schema does not say.
        schema: the property's schema where it has one type, else empty.
    """

    types: frozenset[str] = frozenset()
    is_nullable: bool = True
    schema: Mapping[str, Any] = {}

    @property
    def type(self) -> str | None:
        """The only type of the values; None for several or unknown types."""
        return next(iter(self.types)) if len(self.types) == 1 else None


class Shape:
    """The columns of a stream's files: those of its SCHEMA, then additional ones of its rows.

    A column only ever becomes wider, so a stream begins as many files for it as it has columns at most.

    Attributes:
        columns: by name, in the order of the files.
        widened: columns that hold ``text`` or ``json`` because a value did not fit their type.
    """

    def __init__(self, schema: Any = None) -> None:
        self.columns = columns_of(schema)
        self.widened: dict[str, str] = {}

    def learn(self, names: Iterable[str]) -> bool:
        """Add the columns that are new. Return whether there were any.

        Raises:
            BatchError: there are more columns than any table has.
        """
        new = [name for name in names if name not in self.columns]
        if len(self.columns) + len(new) > _MAX_COLUMNS:
            raise BatchError(f"has more than {_MAX_COLUMNS} columns; write it as jsonl")
        self.columns.update(dict.fromkeys(new, Column()))
        return bool(new)


def columns_of(schema: Any) -> dict[str, Column]:
    """Return the columns of a SCHEMA, in its order; none if it is not the schema of an object."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        return {}
    return {name: column_of(property) for name, property in properties.items()}


def column_of(property: Any) -> Column:
    """Read a property's schema; ``anyOf`` and ``oneOf`` count together."""
    branches = list(_branches(property, 0))
    types = [_types(branch) for branch in branches]
    if not types or any(names is None for names in types):
        return Column()
    named = frozenset().union(*(names or () for names in types))
    values = named - {"null"}
    with_values = [branch for branch, names in zip(branches, types) if names and names - {"null"}]
    return Column(values, "null" in named, with_values[0] if len(with_values) == 1 and len(values) == 1 else {})


def _branches(property: Any, depth: int) -> Iterator[Mapping[str, Any]]:
    if not isinstance(property, dict) or depth > 20:
        yield {}
        return
    for word in ("anyOf", "oneOf"):
        if isinstance(property.get(word), list) and property[word]:
            for branch in property[word]:
                yield from _branches(branch, depth + 1)
            return
    yield property


def _types(branch: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the types of a schema without alternatives; None without valid types."""
    declared = branch.get("type")
    names = [declared] if isinstance(declared, str) else declared if isinstance(declared, list) else []
    if not names or not all(isinstance(name, str) and name in _TYPES for name in names):
        return None
    types = frozenset(names)
    return types - {"integer"} if "number" in types else types
