"""Errors as text of bounded length and without secrets, for logs and dead letters."""

from __future__ import annotations

import os
import traceback
from types import TracebackType

from balog.common.errors import redact_error

_MAX_LENGTH = 300
TRACEBACK_LIMIT = 16_384
"""Characters of a traceback's end that are kept."""

_OWN = os.path.dirname(__file__) + os.sep


def error_line(error: BaseException) -> str:
    """Return an error's class, with its module unless it is built in, and its text, in at most 300 characters."""
    name = _name(error)
    try:
        text = str(error)[: 2 * _MAX_LENGTH]
    except BaseException:  # its own __str__ raises
        text = ""
    return f"{name}: {redact_error(' '.join(text.split()))}"[:_MAX_LENGTH] if text else name


def _name(error: BaseException) -> str:
    """Return the name of an error's class. It is no secret's, even if it ends like one: ``InvalidToken: expired``."""
    kind = type(error)
    is_short = kind.__module__ in ("builtins", "__main__")
    return kind.__qualname__ if is_short else f"{kind.__module__}.{kind.__qualname__}"


def format_traceback(error: BaseException) -> str:
    """Return the traceback that Python would print, without the engine's frames above the handler's."""
    try:
        text = "".join(traceback.format_exception(type(error), error, _skip_own(error.__traceback__)))
        frames, name, reason = text[-2 * TRACEBACK_LIMIT :].rpartition(f"\n{_name(error)}: ")
        return f"{redact_error(frames)}{name}{redact_error(reason)}"[-TRACEBACK_LIMIT:]
    except BaseException:  # an error whose __str__ raises, or whose source can't be read
        return type(error).__name__


def _skip_own(trace: TracebackType | None) -> TracebackType | None:
    rest = trace
    while rest is not None and rest.tb_frame.f_code.co_filename.startswith(_OWN):
        rest = rest.tb_next
    return rest if rest is not None else trace
