"""Compile a tree to Python closures, one call a node. A closure takes an event or a row, and never raises.

A value closure gives a value, None for NULL. A test closure tells only whether a condition is true, so that it can
leave out what parts false from NULL.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from balog.event import LEVELS
from balog.filters import tree
from balog.filters.accessors import COLUMN_GETTERS, path_getter
from balog.filters.functions import CASTS, FLIPPED, OPERATORS, READERS, comparison
from balog.filters.patterns import compile_regex
from balog.filters.tree import Constant, ExpressionNode, Kind

Get = Callable[[Any], Any]
Test = Callable[[Any], bool]


def compile_test(node: ExpressionNode) -> Test:
    """Compile a condition to a function that returns whether it is true; NULL is not true."""
    if isinstance(node, (tree.And, tree.Or)):
        return _logic_test(node)
    if isinstance(node, tree.Compare) and node.op == "=" and node.by == "string":
        left, right = _constant_right(node)
        if isinstance(right, Constant):
            get, text = compile_value(left), right.value
            return lambda row: get(row) == text  # only text equals text
    if isinstance(node, tree.Among) and (choices := _choices(node)):
        read = _as(node.value, _common_kind(node))
        return lambda row: read(row) in choices  # None is none of them
    get = compile_value(node)
    return lambda row: get(row) is True


def _logic_test(node: tree.And | tree.Or) -> Test:
    tests, is_and = [compile_test(part) for part in node.parts], isinstance(node, tree.And)
    if len(tests) > 2:
        combine = all if is_and else any
        return lambda row: combine(test(row) for test in tests)
    first, second = tests
    return (lambda row: first(row) and second(row)) if is_and else (lambda row: first(row) or second(row))


def compile_value(node: ExpressionNode) -> Get:
    """Compile a node to a function that returns its value, None for NULL."""
    return _COMPILERS[type(node)](node)


def _as(node: ExpressionNode, kind: Kind) -> Get:
    """Return a closure that returns a value of this kind, None for another kind. A level is returned as its number."""
    if kind == "any":
        return compile_value(node)
    if isinstance(node, Constant):
        value = LEVELS[node.value] if kind == "level" and node.kind == "level" else node.value
        return lambda row: value
    get = compile_value(node)
    if kind != "level" and (node.kind == kind or (kind == "string" and node.kind == "level")):
        return get
    read = READERS[kind]
    return lambda row: read(get(row))


# Names


def _constant(node: Constant) -> Get:
    value = node.value
    return lambda row: value


# Conditions


def _logic(node: tree.And | tree.Or) -> Get:
    parts, decisive = [_as(part, "bool") for part in node.parts], isinstance(node, tree.Or)

    def get(row: Any) -> bool | None:
        result: bool | None = not decisive
        for part in parts:
            value: bool | None = part(row)
            if value is decisive:
                return decisive
            if value is None:
                result = None
        return result

    return get


def _not(node: tree.Not) -> Get:
    get = _as(node.part, "bool")
    return lambda row: None if (value := get(row)) is None else not value


def _constant_right(node: tree.Compare) -> tuple[ExpressionNode, ExpressionNode]:
    return (node.right, node.left) if isinstance(node.left, Constant) else (node.left, node.right)


def _compare(node: tree.Compare) -> Get:
    left, right = _constant_right(node)
    if isinstance(right, Constant):
        if right.kind == "null":
            return lambda row: None
        return _compare_constant(OPERATORS[node.op if left is node.left else FLIPPED[node.op]], left, right, node.by)
    get_left, get_right, compare = compile_value(left), compile_value(right), comparison(node)
    return lambda row: compare(get_left(row), get_right(row))


def _compare_constant(op: Callable[[Any, Any], bool], left: ExpressionNode, right: Constant, by: Kind) -> Get:
    constant = _as(right, by)(None)
    if by == "string" and left.kind == "any":
        get = compile_value(left)
        return lambda row: op(value, constant) if (value := get(row)).__class__ is str else None
    if by == "level" and isinstance(left, tree.EventColumn):
        names = frozenset(name for name, number in LEVELS.items() if op(number, constant))
        name_of = COLUMN_GETTERS["level"]
        return lambda row: None if (name := name_of(row)) is None else name in names
    get = _as(left, by)
    return lambda row: None if (value := get(row)) is None else op(value, constant)


def _differs(node: tree.Differs) -> Get:
    left, right = compile_value(node.equal.left), compile_value(node.equal.right)
    compare = comparison(node.equal)

    def get(row: Any) -> bool:
        left_value, right_value = left(row), right(row)
        same = compare(left_value, right_value)
        return not (left_value is None and right_value is None) if same is None else not same

    return get


def _common_kind(node: tree.Among) -> Kind:
    """Return the kind as which all choices except NULLs are compared; ``any`` for several kinds."""
    kinds = {equal.by for equal in node.equals if equal.right.kind != "null"}
    return kinds.pop() if len(kinds) == 1 else "any"


def _choices(node: tree.Among) -> frozenset[Any]:
    """Return the choices except NULLs, if all are literal texts or all are literal numbers; else None."""
    rights = [equal.right for equal in node.equals if equal.right.kind != "null"]
    if _common_kind(node) not in ("string", "number") or not all(isinstance(right, Constant) for right in rights):
        return frozenset()
    return frozenset(right.value for right in rights if isinstance(right, Constant))


def _among(node: tree.Among) -> Get:
    known = _choices(node)
    if known and all(equal.right.kind != "null" for equal in node.equals):
        read = _as(node.value, _common_kind(node))
        return lambda row: None if (value := read(row)) is None else value in known
    get = compile_value(node.value)
    choices = [(comparison(equal), compile_value(equal.right)) for equal in node.equals]

    def among(row: Any) -> bool | None:
        value = get(row)
        result: bool | None = False
        for compare, choice in choices:
            same = compare(value, choice(row))
            if same:
                return True
            if same is None:
                result = None
        return result

    return among


def _between(node: tree.Between) -> Get:
    get, low, high = (compile_value(part) for part in (node.value, node.low.right, node.high.right))
    above, below = comparison(node.low), comparison(node.high)

    def between(row: Any) -> bool | None:
        value = get(row)
        first, second = above(value, low(row)), below(value, high(row))
        if first is False or second is False:
            return False
        return None if first is None or second is None else True

    return between


def _is_null(node: tree.IsNull) -> Get:
    get = compile_value(node.value)
    return lambda row: get(row) is None


def _is_bool(node: tree.IsBool) -> Get:
    get, expected = compile_value(node.value), node.expected
    return lambda row: get(row) is expected


def _like(node: tree.Like) -> Get:
    get, match = _as(node.value, "string"), node.pattern.matcher()
    return lambda row: None if (text := get(row)) is None else match(text)


def _matches(node: tree.Matches) -> Get:
    get, search = _as(node.value, "string"), compile_regex(node.pattern).search
    return lambda row: None if (text := get(row)) is None else search(text)


# Values


def _call_safely(call: Callable[..., Any], arguments: list[Get]) -> Get:
    """Call with the arguments' values; return NULL for a NULL argument or without a result."""
    if len(arguments) == 2:
        return _call_with_two(call, *arguments)

    def get(row: Any) -> Any:
        values = [argument(row) for argument in arguments]
        if None in values:
            return None
        try:
            return call(*values)
        except (ArithmeticError, ValueError):
            return None

    return get


def _call_with_two(call: Callable[..., Any], first: Get, second: Get) -> Get:
    def get(row: Any) -> Any:
        first_value, second_value = first(row), second(row)
        if first_value is None or second_value is None:
            return None
        try:
            return call(first_value, second_value)
        except (ArithmeticError, ValueError):
            return None

    return get


def _call(node: tree.FunctionCall) -> Get:
    wants = zip(node.arguments, node.function.parameters)
    return _call_safely(node.function.call, [_as(argument, kind) for argument, kind in wants])


def _case(node: tree.CaseWhen) -> Get:
    if node.subject is not None:
        return _simple_case(node, node.subject)
    branches = [(compile_test(test), compile_value(result)) for test, result in node.branches]
    otherwise = compile_value(node.otherwise)

    def case(row: Any) -> Any:
        for test, result in branches:
            if test(row):
                return result(row)
        return otherwise(row)

    return case


def _simple_case(node: tree.CaseWhen, subject: ExpressionNode) -> Get:
    get, otherwise = compile_value(subject), compile_value(node.otherwise)
    branches = [
        (comparison(test), compile_value(test.right), compile_value(result))
        for test, result in node.branches
        if isinstance(test, tree.Compare)
    ]

    def case(row: Any) -> Any:
        value = get(row)
        for compare, choice, result in branches:
            if compare(value, choice(row)):
                return result(row)
        return otherwise(row)

    return case


def _coalesce(node: tree.Coalesce) -> Get:
    parts = [compile_value(part) for part in node.parts]

    def get(row: Any) -> Any:
        for part in parts:
            value = part(row)
            if value is not None:
                return value
        return None

    return get


def _null_if(node: tree.NullIf) -> Get:
    left, right = compile_value(node.equal.left), compile_value(node.equal.right)
    compare = comparison(node.equal)

    def null_if(row: Any) -> Any:
        value = left(row)
        return None if compare(value, right(row)) else value

    return null_if


_COMPILERS: dict[type[ExpressionNode], Callable[[Any], Get]] = {
    Constant: _constant,
    tree.EventColumn: lambda node: COLUMN_GETTERS[node.name],
    tree.Path: lambda node: path_getter(node.root, node.steps),
    tree.And: _logic,
    tree.Or: _logic,
    tree.Not: _not,
    tree.Compare: _compare,
    tree.Differs: _differs,
    tree.Among: _among,
    tree.Between: _between,
    tree.IsNull: _is_null,
    tree.IsBool: _is_bool,
    tree.Like: _like,
    tree.Matches: _matches,
    tree.FunctionCall: _call,
    tree.Cast: lambda node: _call_safely(CASTS[node.to][1], [compile_value(node.value)]),
    tree.CaseWhen: _case,
    tree.Coalesce: _coalesce,
    tree.NullIf: _null_if,
}
