"""The tree of a parsed expression, shared by two back ends: closures and Spark's SQL.

Every node knows what ``kind`` of value it gives. ``any`` is a value whose kind shows only when there is a row: a part
of a payload, a column of a record.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from balog.expressions.patterns import LikePattern

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


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the language: its arguments, its result, and its form in Python and Spark.

    NULL in any argument gives NULL, and so does an argument of another kind. The last ``optional`` arguments may be
    left out. ``spark`` is a template with the arguments' positions.
    """

    name: str
    wants: tuple[Kind, ...]
    gives: Kind
    call: Callable[..., Any]
    spark: str
    optional: int = 0


@dataclass(frozen=True, slots=True)
class ExpressionNode:
    """A node; ``kind`` is the kind of its value unless that is NULL."""

    kind: Kind


@dataclass(frozen=True, slots=True)
class Constant(ExpressionNode):
    """A literal. A level is its canonical name, a timestamp is aware."""

    value: Any


@dataclass(frozen=True, slots=True)
class EventColumn(ExpressionNode):
    """A member of an event's facility layer, or ``cls_type``."""

    name: str


@dataclass(frozen=True, slots=True)
class Path(ExpressionNode):
    """A path in a payload, a context or a row: keys, and array indexes from 0."""

    root: Literal["payload", "context", "row"]
    steps: tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class And(ExpressionNode):
    """All parts hold."""

    parts: tuple[ExpressionNode, ...]


@dataclass(frozen=True, slots=True)
class Or(ExpressionNode):
    """Some part holds."""

    parts: tuple[ExpressionNode, ...]


@dataclass(frozen=True, slots=True)
class Not(ExpressionNode):
    """The part does not hold."""

    part: ExpressionNode


@dataclass(frozen=True, slots=True)
class Compare(ExpressionNode):
    """``=``, ``<>``, ``<``, ``<=``, ``>``, ``>=``; ``by`` is the kind that both sides are read as."""

    op: str
    left: ExpressionNode
    right: ExpressionNode
    by: Kind


@dataclass(frozen=True, slots=True)
class Differs(ExpressionNode):
    """``IS DISTINCT FROM``: never NULL."""

    equal: Compare


@dataclass(frozen=True, slots=True)
class Among(ExpressionNode):
    """``IN``: one comparison a choice, all with the same left side."""

    value: ExpressionNode
    equals: tuple[Compare, ...]


@dataclass(frozen=True, slots=True)
class Between(ExpressionNode):
    """``BETWEEN``: both comparisons have the same left side."""

    value: ExpressionNode
    low: Compare
    high: Compare


@dataclass(frozen=True, slots=True)
class IsNull(ExpressionNode):
    """``IS NULL``."""

    value: ExpressionNode


@dataclass(frozen=True, slots=True)
class IsBool(ExpressionNode):
    """``IS TRUE``, ``IS FALSE``."""

    value: ExpressionNode
    expected: bool


@dataclass(frozen=True, slots=True)
class Like(ExpressionNode):
    """``LIKE``, ``ILIKE``."""

    value: ExpressionNode
    pattern: LikePattern


@dataclass(frozen=True, slots=True)
class Matches(ExpressionNode):
    """``RLIKE``: the pattern is found somewhere in the text."""

    value: ExpressionNode
    pattern: str


@dataclass(frozen=True, slots=True)
class Arithmetic(ExpressionNode):
    """``+``, ``-``, ``*``, ``/``, ``%``."""

    op: str
    left: ExpressionNode
    right: ExpressionNode


@dataclass(frozen=True, slots=True)
class Negative(ExpressionNode):
    """Unary minus."""

    value: ExpressionNode


@dataclass(frozen=True, slots=True)
class Concat(ExpressionNode):
    """``||``."""

    left: ExpressionNode
    right: ExpressionNode


@dataclass(frozen=True, slots=True)
class CaseWhen(ExpressionNode):
    """``CASE WHEN test THEN result … ELSE otherwise END``; with a subject each test compares it to something."""

    branches: tuple[tuple[ExpressionNode, ExpressionNode], ...]
    otherwise: ExpressionNode
    subject: ExpressionNode | None = None


@dataclass(frozen=True, slots=True)
class Coalesce(ExpressionNode):
    """The first part that is not NULL."""

    parts: tuple[ExpressionNode, ...]


@dataclass(frozen=True, slots=True)
class NullIf(ExpressionNode):
    """NULL when both sides are equal, else the left one."""

    equal: Compare


@dataclass(frozen=True, slots=True)
class FunctionCall(ExpressionNode):
    """A function with its arguments."""

    function: Function
    arguments: tuple[ExpressionNode, ...]


@dataclass(frozen=True, slots=True)
class Cast(ExpressionNode):
    """``CAST``, ``TRY_CAST``: NULL when the value cannot become ``to`` (STRING, DOUBLE, INT, BIGINT, BOOLEAN)."""

    value: ExpressionNode
    to: str
