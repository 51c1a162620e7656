"""Compare two values, for both back ends."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

from balog.expressions.functions import READERS
from balog.expressions.tree import Compare

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
FLIPPED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""The operator with its sides exchanged."""


def comparison(node: Compare) -> Callable[[Any, Any], bool | None]:
    """Return the comparison as a function of both sides' values, so that a shared side is computed once."""
    op = OPERATORS[node.op]
    if node.by == "any":
        return partial(_compare_any, op)
    read = READERS[node.by]

    def compare(left: Any, right: Any) -> bool | None:
        one, other = read(left), read(right)
        return None if one is None or other is None else op(one, other)

    return compare


def _compare_any(op: Callable[[Any, Any], bool], left: Any, right: Any) -> bool | None:
    """Compare values of unknown kinds; NULL for different kinds."""
    for kind in ("string", "number", "bool", "timestamp"):
        read = READERS[kind]
        one, other = read(left), read(right)
        if one is not None and other is not None:
            return op(one, other)
    return None
