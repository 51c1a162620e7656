"""The tree of a parsed expression, shared by two back ends: closures and Spark's SQL.

Every node knows what ``kind`` of value it gives. ``any`` is a value whose kind shows only when there is a row: a part
of a payload, a column of a record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

from msgspec import Struct

from balog.filters.patterns import LikePattern

Kind = Literal["any", "null", "bool", "number", "string", "timestamp", "level"]

WORDS: dict[Kind, str] = {
    "any": "a value",
    "null": "NULL",
    "bool": "true or false",
    "number": "a number",
    "string": "text",
    "timestamp": "a time",
    "level": "a level",
}
"""The kinds as an error message calls them."""


class Function(Struct, frozen=True):
    """A function of the language: its arguments, its result, and its form in Python and Spark.

    NULL in any argument gives NULL, and so does an argument of another kind. The last ``optional`` arguments may be
    left out. ``spark`` is a template with the arguments' positions.
    """

    name: str
    parameters: tuple[Kind, ...]
    result: Kind
    call: Callable[..., Any]
    spark: str
    optional: int = 0


class ExpressionNode(Struct, frozen=True):
    """A node; ``kind`` is the kind of its value unless that is NULL."""

    kind: Kind


def kind_of(results: Iterable[ExpressionNode]) -> Kind:
    """Return the kind of a value that is one of several results."""
    kinds = {result.kind for result in results} - {"null"}
    if kinds == {"level", "string"}:
        return "string"
    return kinds.pop() if len(kinds) == 1 else "any" if kinds else "null"


class Constant(ExpressionNode, frozen=True):
    """A literal. A level is its canonical name, a timestamp is aware."""

    value: Any


class EventColumn(ExpressionNode, frozen=True):
    """A member of an event's facility layer, or ``cls_type``."""

    name: str


class Path(ExpressionNode, frozen=True):
    """A path in a payload, a context or a row: keys, and array indexes from 0."""

    root: Literal["payload", "context", "row"]
    steps: tuple[str | int, ...]


class And(ExpressionNode, frozen=True):
    """All parts hold."""

    parts: tuple[ExpressionNode, ...]


class Or(ExpressionNode, frozen=True):
    """Some part holds."""

    parts: tuple[ExpressionNode, ...]


class Not(ExpressionNode, frozen=True):
    """The part does not hold."""

    part: ExpressionNode


class Compare(ExpressionNode, frozen=True):
    """``=``, ``<>``, ``<``, ``<=``, ``>``, ``>=``; ``by`` is the kind that both sides are read as."""

    op: str
    left: ExpressionNode
    right: ExpressionNode
    by: Kind


class Differs(ExpressionNode, frozen=True):
    """``IS DISTINCT FROM``: never NULL."""

    equal: Compare


class Among(ExpressionNode, frozen=True):
    """``IN``: one comparison a choice, all with the same left side."""

    value: ExpressionNode
    equals: tuple[Compare, ...]


class Between(ExpressionNode, frozen=True):
    """``BETWEEN``: both comparisons have the same left side."""

    value: ExpressionNode
    low: Compare
    high: Compare


class IsNull(ExpressionNode, frozen=True):
    """``IS NULL``."""

    value: ExpressionNode


class IsBool(ExpressionNode, frozen=True):
    """``IS TRUE``, ``IS FALSE``."""

    value: ExpressionNode
    expected: bool


class Like(ExpressionNode, frozen=True):
    """``LIKE``, ``ILIKE``."""

    value: ExpressionNode
    pattern: LikePattern


class Matches(ExpressionNode, frozen=True):
    """``RLIKE``: the pattern is found somewhere in the text."""

    value: ExpressionNode
    pattern: str


class CaseWhen(ExpressionNode, frozen=True):
    """``CASE WHEN test THEN result … ELSE otherwise END``; with a subject each test compares it to something."""

    branches: tuple[tuple[ExpressionNode, ExpressionNode], ...]
    otherwise: ExpressionNode
    subject: ExpressionNode | None = None


class Coalesce(ExpressionNode, frozen=True):
    """The first part that is not NULL."""

    parts: tuple[ExpressionNode, ...]


class NullIf(ExpressionNode, frozen=True):
    """NULL when both sides are equal, else the left one."""

    equal: Compare


class FunctionCall(ExpressionNode, frozen=True):
    """A function with its arguments, or an operator of numbers or texts with its sides."""

    function: Function
    arguments: tuple[ExpressionNode, ...]


class Cast(ExpressionNode, frozen=True):
    """``CAST``, ``TRY_CAST``: NULL when the value cannot become ``to`` (STRING, DOUBLE, INT, BIGINT, BOOLEAN)."""

    value: ExpressionNode
    to: str
