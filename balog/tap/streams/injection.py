"""Dependency injection: a tap's function names what it needs as parameters, in any order."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any

from balog.common.text import suggest
from balog.tap.errors import TapError

Providers = Mapping[str, Callable[[], Any]]
"""Functions that make the arguments, by parameter name. Each is called only when a function asks for its argument, so
that a stream without a client needs no login."""


def inject(function: Callable[..., Any], names: Collection[str], title: str) -> Callable[[Providers], Any]:
    """Return a function that takes providers and calls ``function`` with the arguments that its parameters name.

    A parameter with a default whose name is not in ``names`` keeps its default.

    Args:
        function: the function to call; ``self`` of a method must be bound already.
        names: the parameters that are allowed.
        title: the function's owner and the place of its declaration, for the error.

    Raises:
        TapError: the function has a parameter of another name.
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError) as error:
        raise TapError(f"{title}: cannot be called by the names of its parameters: {error}") from error
    wanted: list[str] = []
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.name in names and parameter.kind is not parameter.POSITIONAL_ONLY:
            wanted.append(parameter.name)
        elif parameter.default is parameter.empty:
            raise TapError(
                f"{title}: its function has a parameter {parameter.name!r}; it may ask for {', '.join(sorted(names))}"
                + suggest(parameter.name, names, limit=0)
            )
    return lambda providers: function(**{name: providers[name]() for name in wanted})
