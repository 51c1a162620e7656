"""Parse a text to a tree by sqlglot, and reject everything outside the language with its position."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn

from sqlglot import exp

from balog.common.errors import ConfigError
from balog.event import LEVELS, parse_level
from balog.filters import tree
from balog.filters.functions import CASTS, FUNCTIONS, NEGATION, OPERATIONS, parse_time
from balog.filters.names import read_name
from balog.filters.patterns import compile_regex, read_like
from balog.filters.source import Source, short_line
from balog.filters.tree import WORDS, Constant, ExpressionNode, Function, Kind

MAX_DEPTH = 100
"""Operators inside each other; a chain of AND or of OR is one."""

_FUNCTIONS = ", ".join(sorted({*FUNCTIONS, "COALESCE", "NULLIF", "CAST", "TRY_CAST"}))

_CAST_NAMES = {**{name: name for name in CASTS}, "TEXT": "STRING", "VARCHAR": "STRING"}
_LARGEST = 10**308


def parse(text: str, *, rows: bool = False, condition: bool = True) -> ExpressionNode:
    """Parse an expression over events or rows; a ``condition`` must be a boolean.

    Raises:
        ConfigError: it is not one, or not one of this language; in one line, with the column.
    """
    try:
        return _Reader(text, rows).read(condition)
    except RecursionError:
        raise ConfigError("nested too deep to be read; simplify the expression") from None


class _Reader:
    def __init__(self, text: str, rows: bool) -> None:
        self._source = Source(text)
        self._refuse = self._source.refuse
        self._rows = rows
        self._depth = 0

    def read(self, condition: bool) -> ExpressionNode:
        parsed = self._source.parse()
        return self._typed(parsed, "bool", "a filter") if condition else self._node(parsed)

    def _unsupported(self, node: exp.Expression) -> NoReturn:
        if isinstance(node, exp.AggFunc):
            self._refuse(f"{node.sql_name()} is an aggregate; an expression sees one event at a time", node)
        if isinstance(node, exp.Anonymous):
            name = short_line(str(node.this))
            hint = "CAST to one of " + ", ".join(CASTS) if name.upper() in CASTS else f"there are {_FUNCTIONS}"
            self._refuse(f"no function {name}; {hint}", node)
        if isinstance(node, exp.Func):
            self._refuse(f"no function {node.sql_name()}; there are {_FUNCTIONS}", node)
        name = type(node).__name__.upper()
        self._refuse(
            f"{name} is not in the language; there are comparisons, AND, OR, NOT, IN, BETWEEN, LIKE, RLIKE, IS, "
            "arithmetic, ||, CASE and functions",
            node,
        )

    # From sqlglot's tree to ours

    def _node(self, node: exp.Expression | None) -> ExpressionNode:
        if node is None:
            raise ConfigError("something is missing in the expression")
        read = _READERS.get(type(node))
        if read is None:
            self._unsupported(node)
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._refuse(f"more than {MAX_DEPTH} operators inside each other", node)
        try:
            return read(self, node)
        finally:
            self._depth -= 1

    def _typed(self, node: Any, kind: Kind, user: str) -> ExpressionNode:
        read = self._node(node)
        fits = read.kind in (kind, "any", "null") or (kind == "string" and read.kind == "level")
        if not fits:
            self._refuse(f"{user} expects {WORDS[kind]}, not {WORDS[read.kind]}", 0 if node is None else node)
        return read

    def _logic(self, node: exp.Expression) -> ExpressionNode:
        word = type(node).__name__.upper()
        parts = tuple(self._typed(part, "bool", word) for part in node.flatten(unnest=False))
        return tree.And("bool", parts) if isinstance(node, exp.And) else tree.Or("bool", parts)

    def _not(self, node: exp.Expression) -> ExpressionNode:
        return tree.Not("bool", self._typed(node.this, "bool", "NOT"))

    def _literal(self, node: exp.Expression) -> ExpressionNode:
        if node.args.get("is_string"):
            return Constant("string", str(node.this))
        digits = str(node.this)
        try:
            number: int | float = int(digits) if digits.isdigit() else float(digits)
        except ValueError:
            number = math.inf
        if not number <= _LARGEST:
            self._refuse(f"{short_line(digits)} is no number that fits", node)
        return Constant("number", number)

    def _negative(self, node: exp.Expression) -> ExpressionNode:
        negative = self._called(NEGATION, [node.this])
        value: Any = negative.arguments[0]
        is_literal = isinstance(value, Constant) and value.kind == "number"
        return Constant("number", -value.value) if is_literal else negative

    def _operation(self, node: exp.Expression) -> ExpressionNode:
        self._source.allow(node, "this", "expression")
        return self._called(OPERATIONS[_OPERATIONS[type(node)]], [node.this, node.args.get("expression")])

    def _called(self, function: Function, arguments: list[Any]) -> tree.FunctionCall:
        read = (self._typed(item, kind, function.name) for item, kind in zip(arguments, function.parameters))
        return tree.FunctionCall(function.result, function, tuple(read))

    # Comparisons

    def _comparable_sides(
        self, left: ExpressionNode, right: ExpressionNode, sql_node: exp.Expression
    ) -> tuple[ExpressionNode, ExpressionNode, Kind]:
        """Return both sides and the kind of their comparison; a literal beside a level or a time is read as one."""
        kinds = {left.kind, right.kind} - {"null", "any"}
        for special in ("level", "timestamp"):
            if special in kinds and kinds <= {special, "string"}:
                return self._as_kind(left, special, sql_node), self._as_kind(right, special, sql_node), special
        if len(kinds) > 1:
            left_word, right_word = (WORDS[kind] for kind in (left.kind, right.kind))
            self._refuse(f"compares {left_word} with {right_word}, which is never true", sql_node)
        return left, right, kinds.pop() if kinds else "any"

    def _as_kind(self, node: ExpressionNode, kind: Kind, sql_node: exp.Expression) -> ExpressionNode:
        if not isinstance(node, Constant) or node.kind != "string":
            return node
        if kind == "level":
            level = parse_level(node.value)
            if level is None:
                self._refuse(f"no level {short_line(node.value)!r}; there are {', '.join(LEVELS)}", sql_node)
            return Constant("level", level)
        return Constant("timestamp", self._time(node.value, sql_node))

    def _time(self, text: str, node: exp.Expression) -> Any:
        time = parse_time(text)
        if time is None:
            self._refuse(f"{short_line(text)!r} is no time; write it as '2026-11-20' or '2026-11-20T07:46:12Z'", node)
        return time

    def _compare(self, node: exp.Expression) -> tree.Compare:
        op = _COMPARISONS.get(type(node), "=")
        return self._compared(op, self._node(node.this), node.args.get("expression"), node)

    def _compared(self, op: str, left: ExpressionNode, right: Any, sql_node: exp.Expression) -> tree.Compare:
        left_node, right_node, by = self._comparable_sides(left, self._node(right), sql_node)
        return tree.Compare("bool", op, left_node, right_node, by)

    def _differs(self, node: exp.Expression) -> ExpressionNode:
        differs = tree.Differs("bool", self._compare(node))
        return differs if isinstance(node, exp.NullSafeNEQ) else tree.Not("bool", differs)

    def _between(self, node: exp.Expression) -> ExpressionNode:
        self._source.allow(node, "this", "low", "high")
        value = self._node(node.this)
        low = self._compared(">=", value, node.args.get("low"), node)
        high = self._compared("<=", value, node.args.get("high"), node)
        return tree.Between("bool", value, low, high)

    def _among(self, node: exp.Expression) -> ExpressionNode:
        self._source.allow(node, "this", "expressions")
        if not node.expressions:
            self._refuse("IN expects a list with something in it", node)
        value = self._node(node.this)
        return tree.Among("bool", value, tuple(self._compared("=", value, item, node) for item in node.expressions))

    def _is(self, node: exp.Expression) -> ExpressionNode:
        right = node.args.get("expression")
        if isinstance(right, exp.Null):
            return tree.IsNull("bool", self._node(node.this))
        if not isinstance(right, exp.Boolean):
            self._refuse("IS expects [NOT] NULL, TRUE, FALSE or DISTINCT FROM", node)
        return tree.IsBool("bool", self._typed(node.this, "bool", "IS TRUE or IS FALSE"), bool(right.this))

    # Patterns

    def _like(self, node: exp.Expression) -> ExpressionNode:
        escape, like = None, node
        if isinstance(node, exp.Escape):
            like = node.this
            escape = self._text_of(node.expression, "ESCAPE")
        if not isinstance(like, (exp.Like, exp.ILike)):
            self._refuse("ESCAPE goes with LIKE or ILIKE", node)
        self._source.allow(like, "this", "expression", "negate")
        value, pattern = self._typed(like.this, "string", "LIKE"), self._text_of(like.expression, "LIKE")
        try:
            read = read_like(pattern, escape, folded=isinstance(like, exp.ILike))
        except ValueError as error:
            self._refuse(str(error), like.expression)
        condition = tree.Like("bool", value, read)
        return tree.Not("bool", condition) if like.args.get("negate") else condition

    def _rlike(self, node: exp.Expression) -> ExpressionNode:
        self._source.allow(node, "this", "expression")
        value, pattern = self._typed(node.this, "string", "RLIKE"), self._text_of(node.expression, "RLIKE")
        try:
            compile_regex(pattern)
        except ValueError as error:
            self._refuse(short_line(str(error)), node.expression)
        return tree.Matches("bool", value, pattern)

    def _text_of(self, node: Any, user: str) -> str:
        if not (isinstance(node, exp.Literal) and node.is_string):
            self._refuse(f"{user} expects a pattern written out, in single quotes", node)
        return str(node.this)

    # CASE and functions

    def _case(self, node: exp.Expression) -> ExpressionNode:
        self._source.allow(node, "this", "ifs", "default")
        subject = self._node(node.this) if node.this else None
        branches = []
        for branch in node.args["ifs"]:
            if subject is None:
                test = self._typed(branch.this, "bool", "WHEN")
            else:
                test = self._compared("=", subject, branch.this, branch)
            branches.append((test, self._node(branch.args.get("true"))))
        default = node.args.get("default")
        otherwise = self._node(default) if default else Constant("null", None)
        kind = tree.kind_of([otherwise, *(result for _, result in branches)])
        return tree.CaseWhen(kind, tuple(branches), otherwise, subject)

    def _coalesce(self, node: exp.Expression) -> ExpressionNode:
        self._source.allow(node, "this", "expressions")
        parts = tuple(self._node(part) for part in (node.this, *node.expressions))
        return tree.Coalesce(tree.kind_of(parts), parts)

    def _nullif(self, node: exp.Expression) -> ExpressionNode:
        self._source.allow(node, "this", "expression")
        equal = self._compare(node)
        return tree.NullIf(equal.left.kind, equal)

    def _cast(self, node: exp.Expression) -> ExpressionNode:
        self._source.allow(node, "this", "to")
        to = node.args["to"]
        name = to.this.name if isinstance(to.this, exp.DataType.Type) else str(to.this)
        value = self._node(node.this)
        if name.startswith("TIMESTAMP") and isinstance(value, Constant) and value.kind == "string":
            return Constant("timestamp", self._time(value.value, node))
        if name not in _CAST_NAMES or to.expressions:
            self._refuse(f"CAST knows {', '.join(CASTS)}, and TIMESTAMP of a string written out", node)
        if value.kind == "timestamp":
            self._refuse("a time cannot be CAST; compare it with a string", node)
        return tree.Cast(CASTS[_CAST_NAMES[name]][0], value, _CAST_NAMES[name])

    def _call(self, node: exp.Expression) -> ExpressionNode:
        if isinstance(node, exp.Anonymous):
            name, arguments = str(node.this).upper(), list(node.expressions)
            if name not in FUNCTIONS:
                self._unsupported(node)
        else:
            name, keys = _FUNCTION_NODES[type(node)]
            if isinstance(node, exp.Trim) and node.args.get("position"):
                side = str(node.args["position"])
                name = {"LEADING": "LTRIM", "TRAILING": "RTRIM"}.get(side, name)
                self._source.allow(node, *keys, "position")
            else:
                self._source.allow(node, *keys)
            arguments = [node.args[key] for key in keys if node.args.get(key)]
        function = FUNCTIONS[name]
        if not len(function.parameters) - function.optional <= len(arguments) <= len(function.parameters):
            self._refuse(f"{name} expects {len(function.parameters)} arguments, not {len(arguments)}", node)
        call = self._called(function, arguments)
        if name == "ROUND" and len(arguments) == 2:
            last = call.arguments[1]
            digits = last.value if isinstance(last, Constant) else None
            if not isinstance(digits, int) or abs(digits) > 15:
                self._refuse("ROUND expects its digits written out, as a whole number from -15 to 15", node)
        return call


_COMPARISONS: dict[type[exp.Expression], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_OPERATIONS: dict[type[exp.Expression], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.DPipe: "||",
}

_FUNCTION_NODES: dict[type[exp.Expression], tuple[str, tuple[str, ...]]] = {
    exp.Lower: ("LOWER", ("this",)),
    exp.Upper: ("UPPER", ("this",)),
    exp.Length: ("LENGTH", ("this",)),
    exp.Trim: ("TRIM", ("this",)),
    exp.Substring: ("SUBSTR", ("this", "start", "length")),
    exp.Abs: ("ABS", ("this",)),
    exp.Round: ("ROUND", ("this", "decimals")),
    exp.StartsWith: ("STARTSWITH", ("this", "expression")),
    exp.EndsWith: ("ENDSWITH", ("this", "expression")),
    exp.Contains: ("CONTAINS", ("this", "expression")),
}

_READERS: dict[type[exp.Expression], Callable[[_Reader, Any], ExpressionNode]] = {
    exp.Paren: lambda reader, node: reader._node(node.this),
    exp.And: _Reader._logic,
    exp.Or: _Reader._logic,
    exp.Not: _Reader._not,
    exp.Literal: _Reader._literal,
    exp.Boolean: lambda reader, node: Constant("bool", bool(node.this)),
    exp.Null: lambda reader, node: Constant("null", None),
    exp.Neg: _Reader._negative,
    **dict.fromkeys(
        (exp.Column, exp.Dot, exp.Bracket),
        lambda reader, node: read_name(node, reader._source, rows=reader._rows),
    ),
    exp.NullSafeEQ: _Reader._differs,
    exp.NullSafeNEQ: _Reader._differs,
    exp.Between: _Reader._between,
    exp.In: _Reader._among,
    exp.Is: _Reader._is,
    exp.Like: _Reader._like,
    exp.ILike: _Reader._like,
    exp.Escape: _Reader._like,
    exp.RegexpLike: _Reader._rlike,
    exp.Case: _Reader._case,
    exp.Coalesce: _Reader._coalesce,
    exp.Nullif: _Reader._nullif,
    exp.Cast: _Reader._cast,
    exp.TryCast: _Reader._cast,
    exp.Anonymous: _Reader._call,
    **dict.fromkeys(_COMPARISONS, _Reader._compare),
    **dict.fromkeys(_OPERATIONS, _Reader._operation),
    **dict.fromkeys(_FUNCTION_NODES, _Reader._call),
}
