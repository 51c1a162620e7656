"""Typed values of translated SQL. Types are those of Spark's JSON of a schema: ``long``, ``{"type": "array", …}``."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from balog.analytics.closed_duckdb import quoted, text
from balog.errors import ConfigError

Kind = Any
"""A Spark type: a name, or a dict for arrays, maps and structs."""

_NAMES = {
    "boolean": ("BOOLEAN", "boolean"),
    "byte": ("TINYINT", "tinyint"),
    "short": ("SMALLINT", "smallint"),
    "integer": ("INTEGER", "int"),
    "long": ("BIGINT", "bigint"),
    "double": ("DOUBLE", "double"),
    "string": ("VARCHAR", "string"),
    "binary": ("BLOB", "binary"),
    "date": ("DATE", "date"),
    "timestamp": ("TIMESTAMP", "timestamp"),
    "void": ("INTEGER", "void"),
}
_WHOLE = ("byte", "short", "integer", "long")
_DECIMAL = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")
_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 20}
_SPARK = "; run it with --engine spark"


class SparkNeeded(ConfigError):
    """The embedded engine can't answer as Spark does.

    Args:
        reason: what differs.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"{reason}{_SPARK}", "SQL")


class UnfitType(SparkNeeded):
    """An argument has a type that only Spark reads; ``reason`` is the rest of a sentence on the expression."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"an expression {reason}")
        self.reason = reason


class Value(NamedTuple):
    """An expression in DuckDB's dialect, its Spark type, and its value if it is a literal."""

    sql: str
    kind: Kind
    literal: Any = None


def family(kind: Kind) -> str:
    """Return a type's family: whole, double, decimal, array, map, struct, or its name."""
    if isinstance(kind, dict):
        return str(kind["type"])
    if kind in _WHOLE:
        return "whole"
    return "decimal" if kind.startswith("decimal") else str(kind)


def duckdb_type(kind: Kind) -> str:
    """Return a type in DuckDB's SQL.

    Raises:
        SparkNeeded: DuckDB has no equal type.
    """
    if isinstance(kind, dict):
        if kind["type"] == "array":
            return f"{duckdb_type(kind['elementType'])}[]"
        if kind["type"] == "map":
            return f"MAP({duckdb_type(kind['keyType'])}, {duckdb_type(kind['valueType'])})"
        if kind["type"] == "struct":
            fields = (f"{quoted(field['name'])} {duckdb_type(field['type'])}" for field in kind["fields"])
            return f"STRUCT({', '.join(fields)})"
    elif kind in _NAMES:
        return _NAMES[kind][0]
    elif _DECIMAL.fullmatch(kind):
        return str(kind)
    raise SparkNeeded(f"a column is of the type {simple_type(kind)}")


def simple_type(kind: Kind) -> str:
    """Return a type as DESCRIBE shows it."""
    if not isinstance(kind, dict):
        return _NAMES[kind][1] if kind in _NAMES else str(kind)
    if kind["type"] == "array":
        return f"array<{simple_type(kind['elementType'])}>"
    if kind["type"] == "map":
        return f"map<{simple_type(kind['keyType'])},{simple_type(kind['valueType'])}>"
    if kind["type"] == "struct":
        return f"struct<{','.join(field['name'] + ':' + simple_type(field['type']) for field in kind['fields'])}>"
    return str(kind["type"])


def array_of(kind: Kind) -> Kind:
    """Return the type of arrays of a type."""
    return {"type": "array", "elementType": kind, "containsNull": True}


def digits(kind: Kind) -> tuple[int, int]:
    """Return precision and scale of a decimal or whole type."""
    found = _DECIMAL.fullmatch(kind) if isinstance(kind, str) else None
    return (int(found[1]), int(found[2])) if found else (_DIGITS[kind], 0)


def common(values: list[Value], where: str) -> Kind:
    """Return the type that Spark gives to several values in one place.

    Raises:
        SparkNeeded: Spark would convert between families.
    """
    kinds = [value.kind for value in values if value.kind != "void"]
    if not kinds:
        return "void"
    families = {family(kind) for kind in kinds}
    if all(kind == kinds[0] for kind in kinds):
        return kinds[0]
    if families == {"whole"}:
        return max(kinds, key=_WHOLE.index)
    if families <= {"whole", "double", "decimal"} and "double" in families:
        return "double"
    if families <= {"whole", "decimal"}:
        parts = [digits(kind) for kind in kinds]
        scale = max(part[1] for part in parts)
        precision = max(part[0] - part[1] for part in parts) + scale
        if precision <= 38:
            return f"decimal({precision},{scale})"
    if families == {"date", "timestamp"}:
        return "timestamp"
    raise SparkNeeded(f"{where} mixes {' and '.join(sorted({simple_type(kind) for kind in kinds}))}")


def converted(value: Value, kind: Kind) -> str:
    """Return a value's SQL, converted within its family."""
    return value.sql if value.kind in (kind, "void") else f"CAST({value.sql} AS {duckdb_type(kind)})"


REFUSAL = "balog needs spark: "
FAILURE = "balog failed: "


def refusing(condition: str, reason: str, otherwise: str) -> str:
    """Return SQL that ends the query for Spark where a condition holds."""
    return f"(CASE WHEN {condition} THEN error({text(REFUSAL + reason)}) ELSE {otherwise} END)"


def failing(condition: str, reason: str, otherwise: str) -> str:
    """Return SQL that fails as Spark does where a condition holds."""
    return f"(CASE WHEN {condition} THEN error({text(FAILURE + reason)}) ELSE {otherwise} END)"
