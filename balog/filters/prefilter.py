"""Find the texts that a value must have for a condition to be true, to index many conditions by them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from balog.filters.closures import compile_value
from balog.filters.tree import Among, And, Compare, Constant, EventColumn, ExpressionNode, Path


class Need(NamedTuple):
    """A necessary condition: a value that must be one of some texts.

    Attributes:
        place: the value's name, equal for the same name.
        read: returns the value from an event or a row.
        texts: the texts.
    """

    place: ExpressionNode
    read: Callable[[Any], Any]
    texts: frozenset[str]


def find_need(condition: ExpressionNode) -> Need | None:
    """Return the first ``place = 'text'`` or ``place IN ('text', …)`` that must hold for the condition to be true."""
    if isinstance(condition, And):
        return next((need for part in condition.parts if (need := find_need(part)) is not None), None)
    equals = condition.equals if isinstance(condition, Among) else (condition,)
    pairs = [_pair(equal) for equal in equals]
    equalities = [pair for pair in pairs if pair is not None]
    if not equalities or len(equalities) < len(pairs):
        return None
    operand = equalities[0][0]  # the one left side of all
    return Need(operand, compile_value(operand), frozenset(text for _, text in equalities))


def _pair(node: ExpressionNode) -> tuple[ExpressionNode, str] | None:
    if not isinstance(node, Compare) or node.op != "=" or node.by != "string":
        return None
    for operand, text in ((node.left, node.right), (node.right, node.left)):
        is_place = isinstance(operand, (Path, EventColumn)) and operand.kind in ("any", "string")
        if is_place and isinstance(text, Constant) and text.value.__class__ is str:
            return operand, text.value
    return None
