"""Functions called by the names of their parameters: a tap's function asks for what it wants, in any order."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from typing import Any

from balog.tap.errors import TapError

__all__ = ["by_names", "did_you_mean"]

Givers = Mapping[str, Callable[[], Any]]
"""What can be asked for: each is made when a function asks, so that a file of currencies needs no login."""


def by_names(function: Callable[..., Any], names: Collection[str], what: str) -> Callable[[Givers], Any]:
    """Make of a function one that is given all there is and hands on what the function's parameters name.

    A parameter with a default, of another name, is left alone.

    Args:
        function: what is called; of a method, ``self`` is bound already.
        names: what there is.
        what: whose function it is, and where it was declared, for the error.

    Raises:
        TapError: it wants something else.
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError) as error:
        raise TapError(f"{what}: cannot be called by the names of its parameters: {error}") from error
    wanted: list[str] = []
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.name in names and parameter.kind is not parameter.POSITIONAL_ONLY:
            wanted.append(parameter.name)
        elif parameter.default is parameter.empty:
            raise TapError(
                f"{what}: its function has a parameter {parameter.name!r}; it may ask for {', '.join(sorted(names))}"
                + did_you_mean(parameter.name, names)
            )
    return lambda has: function(**{name: has[name]() for name in wanted})


def did_you_mean(name: str, known: Collection[str]) -> str:
    """Give ``"; did you mean 'this'?"`` where a known name is near, else ``""``."""
    near = get_close_matches(name, known, 1)
    return f"; did you mean {near[0]!r}?" if near else ""
