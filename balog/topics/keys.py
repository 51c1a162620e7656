"""Derive a message's key from its event, for backends that keep order only by key."""

from __future__ import annotations

from collections.abc import Callable

from balog.common.errors import ConfigError
from balog.event import Event

RUN = "context.run_id"
"""The default key: the events of one run keep their order."""


def key_reader(expression: str | None, path: str) -> Callable[[Event], str | None]:
    """Return a function that returns an event's key: the expression's value as text, None for NULL or no expression.

    Args:
        path: the field with the expression, for errors.

    Raises:
        ConfigError: the expression is invalid.
    """
    if expression is None:
        return lambda event: None
    if expression == RUN:  # a logger's process need not load the parser for it
        return lambda event: _text(event.header.context.get("run_id"))
    from balog.filters import Expression

    try:
        evaluate = Expression(expression, gives="any").evaluate
    except ConfigError as error:
        raise ConfigError(error.reason, path=path) from None
    return lambda event: _text(evaluate(event))


def _text(value: object) -> str | None:
    return None if value is None else str(value)
