"""The names that Spark gives to columns without AS."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from balog.analytics.embedded.values import SparkNeeded

_BINARY = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.EQ: "=", exp.GT: ">",
           exp.GTE: ">=", exp.LT: "<", exp.LTE: "<=", exp.And: "AND", exp.Or: "OR", exp.NullSafeEQ: "<=>"}  # fmt: skip
_NAMED = {
    "count", "sum", "avg", "min", "max", "abs", "lower", "upper", "length", "year", "month", "day", "hour",
    "minute", "second", "date_trunc", "substr", "nvl", "coalesce", "concat", "mean", "size", "element_at",
    "map_keys", "map_values", "count_if", "any_value", "max_by", "min_by", "dayofmonth", "dayofweek", "quarter",
    "greatest", "least", "nullif", "date_add", "date_sub", "datediff", "last_day", "map_contains_key", "ifnull",
    "startswith", "endswith", "contains", "stddev", "stddev_samp", "variance", "median", "reverse",
    "char_length", "character_length", "cardinality", "to_date", "bool_and", "bool_or", "every", "some",
    "date_diff",
}  # fmt: skip
"""Functions whose columns are named as they are written, in lower case."""


def name_of(node: Any) -> str:
    """Return the name of a column of a SELECT.

    Raises:
        SparkNeeded: only Spark knows it.
    """
    if node.alias:
        return str(node.alias)
    if isinstance(node, exp.Cast) and isinstance(node.this, (exp.Column, exp.Dot)):
        return str(node.this.name)
    made = _name(node)
    if made is None:
        raise SparkNeeded("a column is an expression without a name; give it one with AS")
    return made


def _name(node: Any) -> str | None:
    if isinstance(node, (exp.Column, exp.Dot)):
        return str(node.name)
    if isinstance(node, exp.Paren):
        return _name(node.this)
    if isinstance(node, exp.Literal):
        return str(node.this) if node.is_string or "e" not in node.this.lower() else None
    if isinstance(node, exp.Null):
        return "NULL"
    if isinstance(node, exp.Boolean):
        return "true" if node.this else "false"
    if type(node) in _BINARY:
        return _joined("({} " + _BINARY[type(node)] + " {})", [node.left, node.right])
    if isinstance(node, exp.NEQ):
        return _joined("(NOT ({} = {}))", [node.left, node.right])
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal):
        return _joined("-{}", [node.this])
    if isinstance(node, exp.Not):
        return _joined("(NOT {})", [node.this])
    if isinstance(node, exp.Bracket) and len(node.expressions) == 1:
        return _joined("{}[{}]", [node.this, node.expressions[0]])
    if isinstance(node, exp.Cast) and not isinstance(node, exp.TryCast):
        return _joined(f"CAST({{}} AS {node.to.sql('spark')})", [node.this])
    if isinstance(node, exp.Anonymous):
        return _call(node)
    return None


def _joined(form: str, nodes: list[Any]) -> str | None:
    names = [_name(node) for node in nodes]
    return None if None in names else form.format(*names)


def _call(node: Any) -> str | None:
    name, arguments = node.name.lower(), node.expressions
    if name not in _NAMED:
        return None
    if len(arguments) == 1 and isinstance(arguments[0], exp.Star):
        return f"{name}(1)"
    if len(arguments) == 1 and isinstance(arguments[0], exp.Distinct):
        inner = arguments[0].expressions
        return _joined(f"{name}(DISTINCT {', '.join(['{}'] * len(inner))})", inner)
    return _joined(f"{name}({', '.join(['{}'] * len(arguments))})", arguments)
