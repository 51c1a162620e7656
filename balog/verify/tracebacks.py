"""The place in a tap's code that a traceback shows."""

from __future__ import annotations

import re
from pathlib import Path

_FRAME = re.compile(r'^\s*File "([^"\n]+)", line (\d+)', re.MULTILINE)
_INSTALLED = re.compile(r"/(?:site|dist)-packages/")
_STANDARD = re.compile(r"/lib(?:64)?/python3[^/]*/|^<")


def place_of(trace: str) -> str:
    """Return ``FILE:LINE`` of the innermost frame in the tap's own code, else of the innermost in any other library.

    The tap's own code is outside of the installed packages, or in a package whose name has the word tap. A file of a
    package is relative to the packages, another below the current folder to that; else its path has two parts.
    """
    frames = _FRAME.findall(trace)
    for is_own in (_is_own, _is_library, lambda path: True):
        for path, line in reversed(frames):
            if is_own(path):
                return f"{_short(path)}:{line}"
    return ""


def _is_own(path: str) -> bool:
    _, installed, rest = path.rpartition("-packages/")
    if installed:
        return "tap" in re.split(r"[^a-z]+", rest.partition("/")[0].lower())
    return not _STANDARD.search(path) and "/bin/" not in path


def _is_library(path: str) -> bool:
    return bool(_INSTALLED.search(path))


def _short(path: str) -> str:
    _, installed, rest = path.rpartition("-packages/")
    if installed:
        return rest
    try:
        return str(Path(path).relative_to(Path.cwd()))
    except ValueError:
        return "/".join(Path(path).parts[-2:])
