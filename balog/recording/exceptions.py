"""Describe an exception as data: type, message, frames with optional locals, and cause."""

from __future__ import annotations

import reprlib
import sys
import traceback
from itertools import islice
from types import TracebackType
from typing import Any

from balog.recording.json_values import safe_str

MAX_FRAMES = 50
"""Number of frames that are kept: the innermost ones, where the exception was raised."""

_MAX_CAUSES = 5
_MAX_LOCALS = 50
_MAX_REPR = 500


class _Short(reprlib.Repr):
    """Representations of few items, and of the beginning of a text.

    reprlib's own cut in the middle of a text may remove the name by which redaction finds a secret.
    """

    def __init__(self) -> None:
        super().__init__()
        self.maxdict = self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdeque = 20

    def repr_str(self, x: str, level: int) -> str:
        return repr(x[:_MAX_REPR])[:_MAX_REPR]

    def repr_int(self, x: int, level: int) -> str:
        return repr(x)[:_MAX_REPR]

    def repr_instance(self, x: object, level: int) -> str:
        return repr(x)[:_MAX_REPR]


_short = _Short()


def find(exc_info: Any) -> BaseException | None:
    """Return the exception of an ``exc_info`` argument, as the standard library's logging reads it."""
    if isinstance(exc_info, BaseException):
        return exc_info
    if isinstance(exc_info, tuple):
        error = exc_info[1] if len(exc_info) > 1 else None
        return error if isinstance(error, BaseException) else None
    return sys.exc_info()[1] if exc_info else None


def describe(error: BaseException, *, with_locals: bool = False) -> dict[str, Any]:
    """Return the fields ``exception`` and ``exc_text`` of a ``log`` payload; never raises.

    ``exception`` has ``type`` (dotted, without ``builtins``), ``message``, ``frames`` (outermost first: ``file``,
    ``line``, ``function`` and, if asked for, ``locals`` as texts) and, where there is one, ``cause``, of the same
    form.
    """
    try:
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    except Exception as failure:
        text = f"(its traceback could not be written: {type(failure).__name__})"
    return {"exception": _as_data(error, with_locals, _MAX_CAUSES), "exc_text": text}


def _as_data(error: BaseException, with_locals: bool, causes: int) -> dict[str, Any]:
    data: dict[str, Any] = {"type": type_name(type(error)), "message": safe_str(error)}
    frames = _frames(error.__traceback__, with_locals)
    if frames:
        data["frames"] = frames
    cause = error.__cause__
    if cause is None and not error.__suppress_context__:
        cause = error.__context__
    if cause is not None and causes:
        data["cause"] = _as_data(cause, with_locals, causes - 1)
    return data


def type_name(kind: type) -> str:
    """Return the dotted name of a class, without ``builtins``."""
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _frames(trace: TracebackType | None, with_locals: bool) -> list[dict[str, Any]]:
    frames: list[dict[str, Any]] = []
    while trace is not None:
        code = trace.tb_frame.f_code
        frame: dict[str, Any] = {"file": code.co_filename, "line": trace.tb_lineno, "function": code.co_name}
        if with_locals:
            local = trace.tb_frame.f_locals
            frame["locals"] = {
                name: safe_str(value, _short.repr)[:_MAX_REPR]
                for name, value in islice(list(local.items()), _MAX_LOCALS)
            }
        frames.append(frame)
        trace = trace.tb_next
    return frames[-MAX_FRAMES:]
