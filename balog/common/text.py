"""Texts in lines for people: counts, and texts of others on one line, printable and cut."""

from __future__ import annotations

_OF_ONE = {"are": "is", "were": "was", "have": "has", "wait": "waits", "stay": "stays"}


def counted(count: float, noun: str, verb: str = "", shown: str = "") -> str:
    """Return a count with its noun, and a verb, in the plural unless it is one.

    Args:
        count: the number.
        noun: in the singular; its plural ends in ``s``.
        verb: in the plural: ``are``, ``were``, ``have``, ``wait`` or ``stay``.
        shown: the number as text, such as ``12,000``; by default all its digits.
    """
    parts = [shown or str(count), noun if count == 1 else f"{noun}s"]
    return " ".join([*parts, _OF_ONE[verb] if count == 1 else verb] if verb else parts)


def printable(text: str, replacement: str = "\N{REPLACEMENT CHARACTER}") -> str:
    """Return a text with another character for each that a terminal would not print, such as control characters."""
    return text if text.isprintable() else "".join(char if char.isprintable() else replacement for char in text)


def cut(text: str, longest: int) -> str:
    """Return a text of at most ``longest`` characters, with … at the end if it was longer."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def one_line(text: str) -> str:
    """Return a text on one line, without control characters and repeated spaces."""
    return " ".join(printable(text, " ").split())
