"""Find the place in the program that logs: file, line and function of the caller, and its stack."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

KEY = "callsite"
"""The key of a callsite in the context."""

MAX_STACK = 100
"""Number of frames of a stack that are kept: the innermost ones."""

_OWN = ("balog.log.logger", "balog.log", "structlog", "logging")
_MAX_KNOWN = 2048


class CallsiteFinder:
    """Finds the caller of a logger."""

    def __init__(self) -> None:
        self._is_inner: dict[str, bool] = {}

    def find(self, stacklevel: int = 1, depth: int = 3) -> FrameType | None:
        """Return the frame that logs: the innermost one outside of loggers; None without one.

        Args:
            stacklevel: 2 for the caller of that frame, and so on, as in the standard library.
            depth: the number of frames to skip at least: this one's, and those of the logger that are always there.
        """
        frame: FrameType | None = sys._getframe(depth)
        known = self._is_inner
        while frame is not None:
            is_inner = known.get(frame.f_code.co_filename)
            if is_inner is None:
                is_inner = self._belongs(frame)
            if not is_inner:
                break
            frame = frame.f_back
        while stacklevel > 1 and frame is not None and frame.f_back is not None:
            frame, stacklevel = frame.f_back, stacklevel - 1
        return frame

    def _belongs(self, frame: FrameType) -> bool:
        """Return whether a frame is of a logger; cached by file, unless several modules share its name."""
        module, file = frame.f_globals.get("__name__"), frame.f_code.co_filename
        is_inner = isinstance(module, str) and any(module == name or module.startswith(f"{name}.") for name in _OWN)
        if not file.startswith("<") and len(self._is_inner) < _MAX_KNOWN:
            self._is_inner[file] = is_inner
        return is_inner


class CallsiteEncoder:
    """Encodes callsites as members of a context, and caches them.

    Args:
        encode: encodes values as the members of a JSON object, redacted.
    """

    def __init__(self, encode: Callable[[Mapping[str, Any]], bytes]) -> None:
        self._encode = encode
        self._known: dict[tuple[int, int], tuple[bytes, object]] = {}

    def encode(self, frame: FrameType) -> bytes:
        """Encode the callsite of a frame."""
        code = frame.f_code
        key = id(code), frame.f_lasti  # the line number takes longer
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            known = self._known[key] = self._encode({KEY: describe(frame)}), code  # its id stays in use
        return known[0]


def describe(frame: FrameType) -> dict[str, Any]:
    """Return ``file``, ``line`` and ``func`` of a frame."""
    return {"file": frame.f_code.co_filename, "line": frame.f_lineno, "func": frame.f_code.co_name}


def format_stack(frame: FrameType) -> str:
    """Return the stack of a frame in the standard library's form."""
    return "Stack (most recent call last):\n" + "".join(traceback.format_stack(frame, MAX_STACK)).rstrip("\n")


DEFAULT = CallsiteFinder()
"""The finder of all loggers, for its cache."""
