"""What an expression is once it has been read: a small tree that two back ends share, closures and Spark's SQL.

Every node knows what ``kind`` of value it gives. ``any`` is a value whose kind shows only when there is a row: a part
of a payload, a column of a record.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from balog.expressions.patterns import LikePattern

__all__ = [
    "WORDS",
    "Among",
    "And",
    "Arithmetic",
    "Between",
    "Call",
    "Case",
    "Cast",
    "Coalesce",
    "Column",
    "Compare",
    "Concat",
    "Constant",
    "Differs",
    "Function",
    "IsBool",
    "IsNull",
    "Kind",
    "Like",
    "Matches",
    "Negative",
    "Node",
    "Not",
    "NullIf",
    "Or",
    "Path",
]

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
    """A function of the language: what it wants, what it gives, how Python and how Spark compute it.

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
class Node:
    """``kind`` is what the node gives when it does not give NULL."""

    kind: Kind


@dataclass(frozen=True, slots=True)
class Constant(Node):
    """A literal. A level is its canonical name, a timestamp is aware."""

    value: Any


@dataclass(frozen=True, slots=True)
class Column(Node):
    """A member of an event's facility layer, or ``cls_type``."""

    name: str


@dataclass(frozen=True, slots=True)
class Path(Node):
    """A place in a payload, a context or a row: keys and array indexes from 0."""

    root: Literal["payload", "context", "row"]
    steps: tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class And(Node):
    """All parts hold."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Or(Node):
    """Some part holds."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Not(Node):
    """The part does not hold."""

    part: Node


@dataclass(frozen=True, slots=True)
class Compare(Node):
    """``=``, ``<>``, ``<``, ``<=``, ``>``, ``>=``; ``by`` is the kind that both sides are read as."""

    op: str
    left: Node
    right: Node
    by: Kind


@dataclass(frozen=True, slots=True)
class Differs(Node):
    """``IS DISTINCT FROM``: never NULL."""

    equal: Compare


@dataclass(frozen=True, slots=True)
class Among(Node):
    """``IN``: one comparison a choice, all with the same left side."""

    value: Node
    equals: tuple[Compare, ...]


@dataclass(frozen=True, slots=True)
class Between(Node):
    """``BETWEEN``: both comparisons have the same left side."""

    value: Node
    low: Compare
    high: Compare


@dataclass(frozen=True, slots=True)
class IsNull(Node):
    """``IS NULL``."""

    value: Node


@dataclass(frozen=True, slots=True)
class IsBool(Node):
    """``IS TRUE``, ``IS FALSE``."""

    value: Node
    expected: bool


@dataclass(frozen=True, slots=True)
class Like(Node):
    """``LIKE``, ``ILIKE``."""

    value: Node
    pattern: LikePattern


@dataclass(frozen=True, slots=True)
class Matches(Node):
    """``RLIKE``: the pattern is found somewhere in the text."""

    value: Node
    pattern: str


@dataclass(frozen=True, slots=True)
class Arithmetic(Node):
    """``+``, ``-``, ``*``, ``/``, ``%``."""

    op: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Negative(Node):
    """Unary minus."""

    value: Node


@dataclass(frozen=True, slots=True)
class Concat(Node):
    """``||``."""

    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Case(Node):
    """``CASE WHEN test THEN result … ELSE otherwise END``; with a subject each test compares it to something."""

    branches: tuple[tuple[Node, Node], ...]
    otherwise: Node
    subject: Node | None = None


@dataclass(frozen=True, slots=True)
class Coalesce(Node):
    """The first part that is not NULL."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class NullIf(Node):
    """NULL when both sides are equal, else the left one."""

    equal: Compare


@dataclass(frozen=True, slots=True)
class Call(Node):
    """A function with its arguments."""

    function: Function
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Cast(Node):
    """``CAST``, ``TRY_CAST``: NULL when the value cannot become ``to`` (STRING, DOUBLE, INT, BIGINT, BOOLEAN)."""

    value: Node
    to: str
