"""Resolve the names of an expression: an event's columns and paths into its context and payload, or a row's columns."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from balog.filters import tree
from balog.filters.source import MARK, Source, short_line
from balog.filters.tree import ExpressionNode, Kind

COLUMNS: dict[str, Kind] = {
    "id": "string",
    "channel": "string",
    "timestamp": "timestamp",
    "level": "level",
    "schema": "string",
    "composition": "bool",
    "cls_type": "string",
}
"""What an event has beside ``context`` and ``payload``."""

_NAMES = ", ".join((*COLUMNS, "context.KEY", "payload.KEY"))


def read_name(node: exp.Expression, source: Source, *, rows: bool) -> ExpressionNode:
    """Resolve a name from its parts.

    Raises:
        ConfigError: an event has no such part.
    """
    steps = _steps(node, source)
    if rows:
        return tree.Path("any", "row", tuple(steps))
    first, *rest = steps
    name = str(first).lower()
    if name == "payload":
        return tree.Path("any", "payload", tuple(rest))
    if name == "context":
        if len(rest) > 1 or any(isinstance(step, int) for step in rest):
            source.refuse("a context holds text by key: context.KEY, or context['KEY'] for a key with dots", node)
        return tree.Path("string" if rest else "any", "context", tuple(rest))
    if name not in COLUMNS:
        hint = f"; strings take single quotes: '{short_line(str(first))}'" if _is_quoted(node) else ""
        source.refuse(f"no name {short_line(str(first))!r}; there are {_NAMES}{hint}", node)
    if rest:
        source.refuse(f"{name} has no parts; there are {_NAMES}", node)
    return tree.EventColumn(COLUMNS[name], name)


def _is_quoted(node: exp.Expression) -> bool:
    return isinstance(node.this, exp.Identifier) and bool(node.this.args.get("quoted"))


def _steps(node: exp.Expression, source: Source) -> list[str | int]:
    """Return keys and indexes from the outside in; by a loop, because a long path may exceed the recursion limit."""
    steps: list[str | int] = []
    while not isinstance(node, exp.Column):
        if isinstance(node, exp.Dot):
            steps.append(_key(node.expression, source))
        elif isinstance(node, exp.Bracket):
            source.allow(node, "this", "expressions")
            index = node.expressions
            if len(index) != 1 or not isinstance(index[0], exp.Literal):
                source.refuse("brackets expect one key in quotes, or one index from 0", node)
            steps.append(str(index[0].this) if index[0].is_string else _index(index[0], source))
        elif isinstance(node, exp.Identifier):
            steps.append(_key(node, source))
            return steps[::-1]
        else:
            source.refuse("only a name has parts", node)
        node = node.this
    source.allow(node, "this", "table", "db", "catalog")
    steps += [_key(node.args[part], source) for part in ("this", "table", "db", "catalog") if node.args.get(part)]
    return steps[::-1]


def _key(node: Any, source: Source) -> str:
    if not isinstance(node, exp.Identifier):
        source.refuse("a part of a name is a word; other keys go in brackets: payload['2nd key']", node)
    return str(node.this).removesuffix(MARK)


def _index(node: exp.Literal, source: Source) -> int:
    digits = str(node.this)
    if not digits.isdigit() or len(digits) > 9:
        source.refuse("an index is a whole number from 0", node)
    return int(digits)
