"""Describe an exception as data: type, message, notes, frames, cause, context and group."""

from __future__ import annotations

import sys
import traceback
from types import TracebackType
from typing import Any

from balog.log.values.json_values import safe_str

MAX_FRAMES = 50
"""Number of frames that are kept: the innermost ones, where the exception was raised."""

MAX_EXCEPTIONS = 25
"""Number of exceptions that are described, with their causes, contexts and the members of groups."""

_MAX_DEPTH = 10
_MAX_MEMBERS = 15
_MAX_NOTES = 20
_MAX_TEXT = 65_536


def find(exc_info: Any) -> BaseException | None:
    """Return the exception of an ``exc_info`` argument, as the standard library's logging reads it."""
    if isinstance(exc_info, BaseException):
        return exc_info
    if isinstance(exc_info, tuple):
        error = exc_info[1] if len(exc_info) > 1 else None
        return error if isinstance(error, BaseException) else None
    try:
        is_wanted = bool(exc_info)
    except Exception:  # an object of the caller's, which raises when it is asked
        is_wanted = True
    return sys.exc_info()[1] if is_wanted else None


def describe(error: BaseException) -> dict[str, Any]:
    """Return the fields ``exception`` and ``exc_text`` of a ``log`` payload; never raises.

    ``exception`` has ``type`` (dotted, without ``builtins``), ``message``, ``notes`` (of ``add_note``), ``frames``
    (outermost first: ``file``, ``line``, ``function``) and, of the same form, ``cause`` (of ``raise … from``),
    ``context`` (the exception that was being handled, unless suppressed) and ``exceptions`` (the members of a group).
    ``omitted`` counts exceptions next to this one that are not described: they are in a cycle, too deep or too many.
    Long texts are cut.
    """
    try:
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    except Exception as failure:
        text = f"(its traceback could not be written: {type(failure).__name__})"
    if len(text) > 4 * _MAX_TEXT:
        text = f"{text[: 2 * _MAX_TEXT]}\n…\n{text[-2 * _MAX_TEXT :]}"
    return {"exception": _Description().of(error, _MAX_DEPTH), "exc_text": text}


class _Description:
    """Describes an exception with those that belong to it, each once."""

    def __init__(self) -> None:
        self._seen: set[int] = set()

    def of(self, error: BaseException, depth: int) -> dict[str, Any]:
        self._seen.add(id(error))
        data: dict[str, Any] = {"type": type_name(type(error)), "message": safe_str(error)[:_MAX_TEXT]}
        notes = getattr(error, "__notes__", None)
        if isinstance(notes, (list, tuple)) and notes:
            data["notes"] = [safe_str(note)[:_MAX_TEXT] for note in notes[:_MAX_NOTES]]
        frames = _frames(error.__traceback__)
        if frames:
            data["frames"] = frames
        omitted = 0
        for name, other in (("cause", error.__cause__), ("context", _context_of(error))):
            if other is None:
                continue
            if self._has_room(other, depth):
                data[name] = self.of(other, depth - 1)
            else:
                omitted += 1
        members = _members_of(error)
        described = [self.of(member, depth - 1) for member in members[:_MAX_MEMBERS] if self._has_room(member, depth)]
        if described:
            data["exceptions"] = described
        omitted += len(members) - len(described)
        if omitted:
            data["omitted"] = omitted
        return data

    def _has_room(self, error: BaseException, depth: int) -> bool:
        return depth > 1 and len(self._seen) < MAX_EXCEPTIONS and id(error) not in self._seen


def _context_of(error: BaseException) -> BaseException | None:
    return None if error.__cause__ is not None or error.__suppress_context__ else error.__context__


def _members_of(error: BaseException) -> tuple[BaseException, ...]:
    """Return the members of an exception group, also of the package ``exceptiongroup``; none of other exceptions."""
    try:
        members = error.exceptions if hasattr(error, "derive") else ()  # type: ignore[attr-defined]
        return tuple(member for member in members if isinstance(member, BaseException))
    except Exception:  # an attribute of that name that is something else
        return ()


def type_name(kind: type) -> str:
    """Return the dotted name of a class, without ``builtins``."""
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _frames(trace: TracebackType | None) -> list[dict[str, Any]]:
    frames: list[dict[str, Any]] = []
    while trace is not None:
        code = trace.tb_frame.f_code
        frame: dict[str, Any] = {"file": code.co_filename, "line": trace.tb_lineno, "function": code.co_name}
        frames.append(frame)
        trace = trace.tb_next
    return frames[-MAX_FRAMES:]
