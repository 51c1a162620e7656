"""Texts and tables of generated pages, in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

CODE = re.compile(r"(`+[^`]+`+)")


def text(words: str) -> str:
    """Return a text of a description: markup outside its pieces of code stands for itself."""
    parts = CODE.split(" ".join(words.split()))
    parts[::2] = [re.sub(r"([<*_\[\]])", r"\\\1", part) for part in parts[::2]]
    return "".join(parts)


def code(value: str) -> str:
    return f"`` {value} ``" if "`" in value else f"`{value}`"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table without the columns that are empty in every row."""
    rows = list(rows)
    kept = [index for index, head in enumerate(heads) if not head or any(row[index] for row in rows)]
    lines = [[heads[index] for index in kept], ["---"] * len(kept), *([row[index] for index in kept] for row in rows)]
    return "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines)
