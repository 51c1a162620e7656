"""Counts in lines for people."""

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
