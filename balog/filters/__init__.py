"""The filter language: a SQL predicate over an event, a row of a stream or Spark's table.

    level >= 'WARNING' AND payload.metric IN ('rows', 'bytes')
    channel LIKE 'tap_stripe.%' AND NOT context.environment = 'test'
    timestamp >= '2026-11-20' AND CAST(payload.values[0].value AS DOUBLE) > 0.5

**Names.** For an event: ``id``, ``channel``, ``timestamp``, ``level``, ``schema``, ``composition``, ``cls_type``,
``context.KEY`` and ``payload.a.b[0].c``, the columns of the Spark source; any other name is an error. For a row: its
columns, with dots for members of nested objects. Write keys that are not identifiers as ``payload['a key']``,
``context['k8s.pod']`` or in ``"double quotes"``. A missing value is NULL. Indexes start at 0.

**NULL.** Logic has three values, as in SQL: a comparison with NULL is NULL, and a filter accepts only true. Only ``IS
[NOT] NULL``, ``IS [NOT] TRUE``, ``IS [NOT] FALSE``, ``IS [NOT] DISTINCT FROM`` and ``COALESCE`` test for NULL.

**Kinds** are text, numbers, booleans and times. Comparing values of different kinds is NULL, or an error if the
expression alone shows it. Text is a number only after CAST. A number is an integer or a float, as in Python. Comparing
an array or an object is NULL. A value of a context is text.

**Levels** compare by severity: DEBUG < INFO < WARNING < ERROR < CRITICAL, in any case and with the aliases WARN and
FATAL. In functions and patterns, a level is its name. **Times** compare with text in ISO 8601 (UTC unless it has a
zone) and with ``TIMESTAMP '…'``; other text is NULL.

**Operators**, from lowest to highest precedence: ``OR``; ``AND``; ``NOT``; ``= <> !=``; ``< <= > >=``; ``[NOT] IN``,
``[NOT] BETWEEN``, ``[NOT] LIKE`` and ``ILIKE`` (``ESCAPE 'c'``; there is no escape character by default), ``[NOT]
RLIKE`` or ``REGEXP``, ``IS``; ``||``; ``+ -``; ``* / %``; unary ``-``. ``/`` does not truncate; division by zero is
NULL. RLIKE finds a regular expression, of the subset that Python and Java share, in the first 65,536 characters of a
text. A backslash in a string is literal, and a quote is doubled. ``-- comments`` and ``/* comments */`` are skipped.

**Functions**: LOWER, UPPER, LENGTH, TRIM, LTRIM, RTRIM, SUBSTR(text, from 1, length), ABS, ROUND(number, digits; half
away from zero), STARTSWITH, ENDSWITH, CONTAINS, COALESCE, NULLIF, CASE, CAST and TRY_CAST to STRING, DOUBLE, INT,
BIGINT, BOOLEAN: an impossible conversion is NULL in both.

No part of an expression is evaluated as code. An expression has at most 16 KiB and 32 nested parentheses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, final

from balog.common.errors import ConfigError

if TYPE_CHECKING:
    from balog.event import Event
    from balog.filters.prefilter import Need
    from balog.filters.tree import ExpressionNode, Kind

__all__ = ["Expression"]


@final
class Expression:
    """A compiled expression. Immutable; equal, hashed and pickled by its text.

    Args:
        text: the expression, at most 16 KiB.
        names: the meaning of names: ``event`` for the parts of an event, ``row`` for the columns of a row.
        gives: ``bool`` for a condition; ``any`` for any expression, for ``evaluate``.

    Raises:
        ConfigError: it is not an expression of this language; one line with the column.
    """

    __slots__ = ("_gives", "_names", "_test", "_text", "_tree", "_value")

    def __init__(
        self, text: str, names: Literal["event", "row"] = "event", *, gives: Literal["bool", "any"] = "bool"
    ) -> None:
        from balog.filters.closures import compile_test, compile_value
        from balog.filters.parser import parse

        tree = parse(text, rows=names == "row", condition=gives == "bool")
        keep = object.__setattr__
        keep(self, "_text", text)
        keep(self, "_names", names)
        keep(self, "_gives", gives)
        keep(self, "_tree", tree)
        keep(self, "_test", compile_test(tree))
        keep(self, "_value", compile_value(tree))

    if TYPE_CHECKING:
        _text: str
        _names: Literal["event", "row"]
        _gives: Literal["bool", "any"]
        _tree: ExpressionNode
        _test: Callable[[Any], bool]
        _value: Callable[[Any], Any]

    @property
    def text(self) -> str:
        """The original text."""
        return self._text

    @property
    def kind(self) -> Kind:
        """The kind of its values except NULL: ``bool``, ``number``, ``string``, ``timestamp`` or ``level``; ``null`` if
        it is always NULL, ``any`` if the kind depends on the event or row.
        """
        return self._tree.kind

    @property
    def need(self) -> Need | None:
        """A value that must be one of some texts for the condition to be true; None if there is none."""
        from balog.filters.prefilter import find_need

        return find_need(self._tree)

    def matches(self, subject: Event | Mapping[str, Any]) -> bool:
        """Return whether the expression is true for an event, or for a row; NULL is not true. Never raises.

        The payload is decoded only when the expression mentions it.
        """
        return self._test(subject)

    def evaluate(self, subject: Event | Mapping[str, Any]) -> Any:
        """Return the expression's value for an event, or for a row; None is NULL. Never raises."""
        return self._value(subject)

    def to_spark(self) -> str:
        """Write the expression for Spark's ``where`` over the columns of the balog data source (Spark 4.0 or later).

        It selects the rows whose events ``matches`` selects, with two differences: numbers are doubles in Spark, so
        integers beyond 2**53 lose digits, and fractions outside 0.001 to 10 million become text in Java's spelling.

        Raises:
            ConfigError: the expression is for rows, is not a condition, or cannot be written for Spark (a key with both
                kinds of quotes).
        """
        if self._names == "row":
            raise ConfigError("an expression over rows has no columns in Spark; make it with names='event'")
        if self._tree.kind not in ("bool", "any", "null"):
            from balog.filters.tree import WORDS

            raise ConfigError(f"Spark's where expects a condition, and this gives {WORDS[self._tree.kind]}")
        from balog.filters.spark import write

        return write(self._tree)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"an expression does not change; make another instead of setting {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"an expression does not change; {name} stays")

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self._text, self._names, self._gives)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Expression):
            return NotImplemented
        return (self._text, self._names, self._gives) == (other._text, other._names, other._gives)

    def __hash__(self) -> int:
        return hash((self._text, self._names, self._gives))

    def __repr__(self) -> str:
        more = "" if self._names == "event" else f", names={self._names!r}"
        return f"Expression({self._text!r}{more})"


def _restore(text: str, names: Literal["event", "row"], gives: Literal["bool", "any"]) -> Expression:
    return Expression(text, names, gives=gives)
