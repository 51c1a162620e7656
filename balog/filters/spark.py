"""Write a tree as SQL for Spark's ``where``, over the columns of the balog data source.

A payload is a VARIANT there, whose value says its type only in each row. So what stands on the other side decides as
which type a path is read, and a value of another type is NULL, as it is in Python. Everything is written so that it
cannot fail under ANSI mode: ``try_…`` functions, and casts guarded by a look at the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timezone
from typing import Any

from balog.common.errors import ConfigError
from balog.event import LEVELS, parse_level
from balog.filters import tree
from balog.filters.functions import FLIPPED, OPERATORS
from balog.filters.patterns import LikePattern, compile_regex
from balog.filters.tree import Constant, ExpressionNode, Kind

MAX_SQL = 4 * 1024 * 1024
"""Characters written on the way. What Python computes once may have to be written twice, and that can double again."""

_TYPES: dict[Kind, str] = {"string": "STRING", "number": "DOUBLE", "bool": "BOOLEAN", "timestamp": "TIMESTAMP"}
_VARIANT_TYPES: dict[Kind, str] = {
    "string": "= 'STRING'",
    "number": "RLIKE '^(BIGINT|DECIMAL|DOUBLE|FLOAT)'",
    "bool": "= 'BOOLEAN'",
}
_TIME = r"^\d{4}-\d\d-\d\d([T ]\d\d:\d\d:\d\d([.]\d{1,9})?(Z|[+-]\d\d:\d\d)?)?$"
_ZONED = r"[T ].*(Z|[+-]\d\d:\d\d)$"
_DOUBLE = r"^[+-]?(\d+[.]?\d*|[.]\d+)([eE][+-]?\d+)?$"
_INTEGER = r"^[+-]?\d+$"
_SPELLINGS = ("DEBUG", "INFO", "WARNING", "WARN", "ERROR", "EXCEPTION", "CRITICAL", "FATAL")
SEVERITIES = {name: LEVELS[parse_level(name) or name] for name in _SPELLINGS}
"""What a text counts as beside a level, in upper case."""
_SEVERITY = " ".join(f"WHEN '{name}' THEN {number}" for name, number in SEVERITIES.items())


def write(node: ExpressionNode) -> str:
    """Write a condition as SQL.

    Raises:
        ConfigError: a key that Spark's paths cannot name, or SQL that becomes too long.
    """
    try:
        return _Writer().read_as(node, "bool")
    except RecursionError:
        raise ConfigError("nested too deep for Spark; simplify the expression") from None


def _text(value: str) -> str:
    """Return a string literal, with ``${`` split because Spark replaces variables even inside literals."""
    value = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r")
    return "'" + value.replace("\0", "\\u0000").replace("${", "\\u0024{") + "'"


def _variant(path: tree.Path) -> str:
    return f"try_variant_get(payload, {_variant_path(path)}, 'variant')" if path.steps else "payload"


def _variant_path(path: tree.Path) -> str:
    parts = ["$"]
    for step in path.steps:
        if isinstance(step, int):
            parts.append(f"[{step}]")
        elif step.replace("_", "a").isalnum() and step.isascii():
            parts.append(f".{step}")
        elif not step or ("'" in step and '"' in step):
            raise ConfigError(f"Spark cannot look up the key {step!r}; rename it or leave it out of the expression")
        else:
            quote = '"' if "'" in step else "'"
            parts.append(f"[{quote}{step}{quote}]")
    return _text("".join(parts))


def _like(pattern: LikePattern) -> str:
    """Return the pattern with Spark's default escape character."""
    pieces = ("".join(_like_char(char) for char in piece) for piece in pattern.pieces)
    return _text("%".join(pieces))


def _like_char(char: str | None) -> str:
    if char is None:
        return "_"
    return "\\" + char if char in "%_\\" else char


def _kinds(node: ExpressionNode) -> set[Kind]:
    """Return the kinds that a node's value may have."""
    if isinstance(node, tree.Path) and node.kind == "any":
        return {"string", "number", "bool"} if node.root == "payload" else set()
    if isinstance(node, tree.CaseWhen):
        return _union([*(result for _, result in node.branches), node.otherwise])
    if isinstance(node, tree.Coalesce):
        return _union(node.parts)
    if isinstance(node, tree.NullIf):
        return _kinds(node.equal.left)
    return set() if node.kind == "null" else {"string" if node.kind == "level" else node.kind}


def _union(nodes: Iterable[ExpressionNode]) -> set[Kind]:
    return {kind for node in nodes for kind in _kinds(node)}


class _Writer:
    def __init__(self) -> None:
        self._known: dict[tuple[int, str], str] = {}
        self._written = 0

    def _count(self, sql: str) -> str:
        self._written += len(sql)
        if self._written > MAX_SQL:
            raise ConfigError("the expression becomes too long for Spark; write CASE, COALESCE or NULLIF less deep")
        return sql

    def read_as(self, node: ExpressionNode, kind: Kind) -> str:
        """Return SQL for the node's value if it is of this kind, else NULL. A level is a name or a severity."""
        key = (id(node), kind)
        if key not in self._known:
            self._known[key] = self._count(self._read_as(node, kind))
        return self._known[key]

    def _read_as(self, node: ExpressionNode, kind: Kind) -> str:
        if kind == "level":
            return self._severity(node)
        if isinstance(node, tree.CaseWhen):
            return self._case(node, lambda result: self.read_as(result, kind))
        if isinstance(node, tree.Coalesce):
            return self._coalesce(node, kind)
        if isinstance(node, tree.NullIf):
            return f"CASE WHEN {self._compare(node.equal)} THEN NULL ELSE {self.read_as(node.equal.left, kind)} END"
        if isinstance(node, tree.Path) and node.root == "payload" and kind in _VARIANT_TYPES:
            where = _VARIANT_TYPES[kind]
            value = _variant(node)
            read = f"try_variant_get(payload, {_variant_path(node)}, '{_TYPES[kind].lower()}')"
            return f"CASE WHEN schema_of_variant({value}) {where} THEN {read} END"
        if node.kind == kind or (kind == "string" and node.kind == "level"):
            return self._plain(node)
        if kind == "timestamp" and node.kind in ("string", "any"):
            return self._time(self.read_as(node, "string"))
        return f"CAST(NULL AS {_TYPES[kind]})"

    def _plain(self, node: ExpressionNode) -> str:
        return _WRITERS[type(node)](self, node)

    # Values

    def _constant(self, node: Constant) -> str:
        value = node.value
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, (int, float)):
            return f"{float(value)!r}D" if value >= 0 else f"(-{-float(value)!r}D)"
        if isinstance(value, datetime):
            return f"TIMESTAMP '{value.astimezone(timezone.utc).replace(tzinfo=None).isoformat(sep=' ')}Z'"
        return _text(value)

    def _time(self, text: str) -> str:
        zoned = f"CASE WHEN {text} RLIKE {_text(_ZONED)} THEN {text} "
        dated = f"WHEN {text} RLIKE '[T ]' THEN concat({text}, 'Z') ELSE concat({text}, 'T00:00:00Z') END"
        return f"CASE WHEN {text} RLIKE {_text(_TIME)} THEN try_cast({zoned}{dated} AS TIMESTAMP) END"

    def _severity(self, node: ExpressionNode) -> str:
        if isinstance(node, Constant) and node.kind == "level":
            return str(LEVELS[node.value])
        return f"CASE upper({self.read_as(node, 'string')}) {_SEVERITY} END"

    def _call(self, node: tree.FunctionCall) -> str:
        arguments = [self.read_as(item, kind) for item, kind in zip(node.arguments, node.function.parameters)]
        if node.function.name == "ROUND":
            digits = node.arguments[1] if len(node.arguments) == 2 else None
            arguments[1:] = [str(digits.value) if isinstance(digits, Constant) else "0"]
        if node.function.name == "SUBSTR":
            arguments[1:] = [f"try_cast({number} AS INT)" for number in arguments[1:]]
            return f"substring({', '.join(arguments)})"
        return node.function.spark.format(*arguments)

    def _cast(self, node: tree.Cast) -> str:
        ways = [self._cast_from(kind, node.value, node.to) for kind in sorted(_kinds(node.value))]
        if not ways:
            return f"CAST(NULL AS {'DOUBLE' if node.kind == 'number' else node.to})"
        return ways[0] if len(ways) == 1 else f"coalesce({', '.join(ways)})"

    def _cast_from(self, kind: Kind, value: ExpressionNode, to: str) -> str:
        sql = self.read_as(value, kind)
        if kind == "timestamp":
            return f"CAST(NULL AS {'DOUBLE' if to in ('INT', 'BIGINT') else to})"
        if to == "STRING":
            if kind == "number":
                whole = f"{sql} = floor({sql}) AND abs({sql}) < 1e15D"
                return f"CASE WHEN {whole} THEN CAST(CAST({sql} AS BIGINT) AS STRING) ELSE CAST({sql} AS STRING) END"
            return sql if kind == "string" else f"CAST({sql} AS STRING)"
        if to == "BOOLEAN":
            if kind == "string":
                return f"CASE lower(trim({sql})) WHEN 'true' THEN true WHEN 'false' THEN false END"
            return sql if kind == "bool" else f"({sql} <> 0D)"
        if kind == "string":
            form = _text(_DOUBLE if to == "DOUBLE" else _INTEGER)
            sql = f"CASE WHEN trim({sql}) RLIKE {form} THEN try_cast(trim({sql}) AS {to}) END"
            return sql if to == "DOUBLE" else f"CAST({sql} AS DOUBLE)"
        if to == "DOUBLE":
            return sql if kind == "number" else f"CAST({sql} AS DOUBLE)"
        return f"CAST(try_cast({sql} AS {to}) AS DOUBLE)"

    def _case(self, node: tree.CaseWhen, read: Callable[[ExpressionNode], str]) -> str:
        branches = (f"WHEN {self.read_as(test, 'bool')} THEN {read(result)}" for test, result in node.branches)
        return f"CASE {' '.join(branches)} ELSE {read(node.otherwise)} END"

    def _coalesce(self, node: tree.Coalesce, kind: Kind) -> str:
        parts = [self.read_as(part, kind) for part in node.parts]
        if all(_kinds(part) <= {kind} for part in node.parts):
            return f"coalesce({', '.join(parts)})"
        tests = [f"WHEN NOT {self._is_null_of(part)}" for part in node.parts[:-1]]
        branches = (f"{test} THEN {part}" for test, part in zip(tests, parts))
        return f"CASE {' '.join(branches)} ELSE {parts[-1]} END" if tests else parts[0]

    # Conditions

    def _logic(self, node: tree.And | tree.Or) -> str:
        word = " AND " if isinstance(node, tree.And) else " OR "
        return "(" + word.join(self.read_as(part, "bool") for part in node.parts) + ")"

    def _compare(self, node: tree.Compare) -> str:
        return self._count(self._write_compare(node))

    def _write_compare(self, node: tree.Compare) -> str:
        if node.by == "level":
            simple = self._compare_level(node)
            if simple:
                return simple
        if node.by != "any":
            return f"({self.read_as(node.left, node.by)} {node.op} {self.read_as(node.right, node.by)})"
        kinds = sorted(_kinds(node.left) & _kinds(node.right))
        if "timestamp" in (both := _union((node.left, node.right))) and "string" in both:
            kinds = [kind for kind in kinds if kind != "timestamp"] + ["timestamp"]
        ways = [f"({self.read_as(node.left, kind)} {node.op} {self.read_as(node.right, kind)})" for kind in kinds]
        if not ways:
            return "CAST(NULL AS BOOLEAN)"
        return ways[0] if len(ways) == 1 else f"coalesce({', '.join(ways)})"

    def _compare_level(self, node: tree.Compare) -> str | None:
        """Compare the level column with a literal by the matching names, which a source can push down."""
        left, right, op = node.left, node.right, node.op
        if isinstance(left, Constant):
            left, right, op = right, left, FLIPPED[op]
        if not (isinstance(left, tree.EventColumn) and isinstance(right, Constant) and right.kind == "level"):
            return None
        if op in ("=", "<>"):
            return f"(`level` {op} {_text(right.value)})"
        names = [_text(name) for name, number in LEVELS.items() if OPERATORS[op](number, LEVELS[right.value])]
        return f"(`level` IN ({', '.join(names)}))" if names else "(`level` <> `level`)"

    def _differs(self, node: tree.Differs) -> str:
        left, right = self._is_null_of(node.equal.left), self._is_null_of(node.equal.right)
        return f"(NOT coalesce({self._compare(node.equal)}, {left} AND {right}))"

    def _among(self, node: tree.Among) -> str:
        by, left, rights = node.equals[0].by, node.equals[0].left, [equal.right for equal in node.equals]
        written_out = all(isinstance(right, Constant) and right.kind == by for right in rights)
        if written_out and all(equal.by == by for equal in node.equals):
            if by == "level" and isinstance(left, tree.EventColumn):
                by = "string"
            if by not in ("any", "level"):
                choices = ", ".join(self.read_as(right, by) for right in rights)
                return f"({self.read_as(left, by)} IN ({choices}))"
        return "(" + " OR ".join(self._compare(equal) for equal in node.equals) + ")"

    def _is_null_of(self, node: ExpressionNode) -> str:
        key = (id(node), "is null")
        if key not in self._known:
            self._known[key] = self._count(self._write_is_null(node))
        return self._known[key]

    def _write_is_null(self, node: ExpressionNode) -> str:
        if isinstance(node, tree.CaseWhen):
            return f"({self._case(node, self._is_null_of)})"
        if isinstance(node, tree.Coalesce):
            return "(" + " AND ".join(self._is_null_of(part) for part in node.parts) + ")"
        if isinstance(node, tree.NullIf):
            return f"({self._is_null_of(node.equal.left)} OR coalesce({self._compare(node.equal)}, false))"
        if isinstance(node, tree.Path) and node.root == "payload":
            value = _variant(node)
            return f"({value} IS NULL OR is_variant_null({value}))"
        if isinstance(node, tree.Path) and not node.steps:
            return "(context IS NULL)"
        if node.kind == "null":
            return "true"
        return f"({self.read_as(node, 'string' if node.kind == 'level' else node.kind)} IS NULL)"

    def _like(self, node: tree.Like) -> str:
        text = self.read_as(node.value, "string")
        return f"({f'lower({text})' if node.pattern.folded else text} LIKE {_like(node.pattern)})"

    def _matches(self, node: tree.Matches) -> str:
        pattern = _text("(?d)" + node.pattern)  # Java then knows one line end, as Python does
        searched = compile_regex(node.pattern).searched
        return f"(substring({self.read_as(node.value, 'string')}, 1, {searched}) RLIKE {pattern})"


_WRITERS: dict[type[ExpressionNode], Callable[[_Writer, Any], str]] = {
    Constant: _Writer._constant,
    tree.EventColumn: lambda writer, node: f"`{node.name}`",
    tree.Path: lambda writer, node: f"context[{_text(str(node.steps[0]))}]",
    tree.And: _Writer._logic,
    tree.Or: _Writer._logic,
    tree.Not: lambda writer, node: f"(NOT {writer.read_as(node.part, 'bool')})",
    tree.Compare: _Writer._compare,
    tree.Differs: _Writer._differs,
    tree.Among: _Writer._among,
    tree.Between: lambda writer, node: f"({writer._compare(node.low)} AND {writer._compare(node.high)})",
    tree.IsNull: lambda writer, node: writer._is_null_of(node.value),
    tree.IsBool: lambda writer, node: f"({writer.read_as(node.value, 'bool')} IS {str(node.expected).upper()})",
    tree.Like: _Writer._like,
    tree.Matches: _Writer._matches,
    tree.FunctionCall: _Writer._call,
    tree.Cast: _Writer._cast,
}
