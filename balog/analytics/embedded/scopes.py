"""Resolves columns of a query as Spark does: by name in any case, through aliases, structs and outer queries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from balog.analytics.closed_duckdb import quoted, text
from balog.analytics.embedded.columns import UnknownColumn
from balog.analytics.embedded.positions import position
from balog.analytics.embedded.values import Kind, SparkNeeded, Value
from balog.errors import ConfigError


class NamedRows(NamedTuple):
    """A table, subquery or view in FROM: its alias, and its columns by name."""

    alias: str
    columns: dict[str, Kind]

    def value(self, name: str) -> Value | None:
        """Return a column, or None."""
        for column, kind in self.columns.items():
            if column.lower() == name.lower():
                return Value(f"{quoted(self.alias)}.{quoted(column)}", kind)
        return None


@dataclass
class Scope:
    """The names that an expression can use.

    Attributes:
        sources: what FROM lists.
        parent: the scope around a subquery.
        merged: columns of USING, by name in lower case.
        aliases: columns of the SELECT, by name in lower case.
        aliases_first: whether an alias hides a column, as in ORDER BY.
    """

    sources: list[NamedRows] = field(default_factory=list)
    parent: Scope | None = None
    merged: dict[str, tuple[str, Value]] = field(default_factory=dict)
    aliases: dict[str, Value] = field(default_factory=dict)
    aliases_first: bool = False

    def resolve(self, node: Any) -> Value:
        """Return the value of a column's name of one or more parts.

        Raises:
            ConfigError: there is no such column, or several.
        """
        parts = [part.name for part in node.parts]
        where = next(_positions(node.parts[0]), "")
        scope: Scope | None = self
        while scope is not None:
            try:
                found = scope._find(parts, where)
            except UnknownColumn:  # a field of a column that exists
                break
            if found is not None:
                return found
            scope = scope.parent
        known = [source.columns for source in self.sources] + [{alias: one.kind for alias, one in self.aliases.items()}]
        raise UnknownColumn(".".join(parts), where, known)

    def _find(self, parts: list[str], where: str) -> Value | None:
        if len(parts) == 1 and self.aliases_first and parts[0].lower() in self.aliases:
            return self.aliases[parts[0].lower()]
        if len(parts) > 1:
            for source in self.sources:
                if source.alias.lower() == parts[0].lower() and (found := source.value(parts[1])) is not None:
                    return fields_of(found, parts[2:])
        if parts[0].lower() in self.merged:
            return fields_of(self.merged[parts[0].lower()][1], parts[1:])
        found_in = [value for source in self.sources if (value := source.value(parts[0])) is not None]
        if len(found_in) > 1:
            reason = f"the column {parts[0]!r} is in several tables{where}; put the table's name before it"
            raise ConfigError(reason, "SQL")
        if found_in:
            return fields_of(found_in[0], parts[1:])
        return self.aliases.get(parts[0].lower()) if len(parts) == 1 else None

    def star(self, alias: str = "") -> Iterator[tuple[str, Value]]:
        """Yield the columns of ``*`` or ``alias.*``, with their names."""
        if not alias:
            yield from self.merged.values()
        for source in self.sources:
            if alias and source.alias.lower() != alias.lower():
                continue
            for name in source.columns:
                value = source.value(name)
                if value is not None and (alias or name.lower() not in self.merged):
                    yield name, value


def fields_of(value: Value, names: list[str]) -> Value:
    """Return a field of a struct, or a key of a map, by a path.

    Raises:
        ConfigError: there is no such field.
    """
    for name in names:
        kind = value.kind
        if isinstance(kind, dict) and kind["type"] == "map" and kind["keyType"] == "string":
            value = Value(f"{value.sql}[{text(name)}]", kind["valueType"])
            continue
        if not isinstance(kind, dict) or kind["type"] != "struct":
            raise SparkNeeded(f"{name!r} is taken from a value that is not an object")
        fields = {field["name"]: field["type"] for field in kind["fields"]}
        exact = next((field for field in fields if field.lower() == name.lower()), None)
        if exact is None:
            raise UnknownColumn(name, "", [fields])
        value = Value(f"struct_extract({value.sql}, {text(exact)})", fields[exact])
    return value


def _positions(node: Any) -> Iterator[str]:
    for part in node.walk():
        if "line" in part.meta:
            yield position(part.meta)
