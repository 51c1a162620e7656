"""An error as one line of bounded length, for logs and dead letters."""

from __future__ import annotations

__all__ = ["error_line"]

_MAX_LENGTH = 300


def error_line(error: BaseException) -> str:
    """Return an error's class, with its module unless it is built in, and its text, in at most 300 characters."""
    kind = type(error)
    name = kind.__qualname__
    if kind.__module__ not in ("builtins", "__main__"):
        name = f"{kind.__module__}.{name}"
    try:
        text = str(error)[: 2 * _MAX_LENGTH]
    except BaseException:  # its own __str__ raises
        text = ""
    return " ".join(f"{name}: {text}".split())[:_MAX_LENGTH] if text else name
