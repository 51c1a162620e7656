"""The parts of a Markdown text that are not code."""

from __future__ import annotations

import re
from collections.abc import Callable

FENCE = re.compile(r"^[ ]*(```+|~~~+).*?^[ ]*\1[ ]*$\n?", re.MULTILINE | re.DOTALL)


def outside(text: str, convert: Callable[[str], str]) -> str:
    """Return the text with its parts outside code blocks converted."""
    parts = []
    at = 0
    for fence in FENCE.finditer(text):
        parts += [convert(text[at : fence.start()]), fence[0]]
        at = fence.end()
    return "".join([*parts, convert(text[at:])])
