"""Counts in lines for people."""

from __future__ import annotations

_OF_ONE = {"are": "is", "were": "was", "have": "has", "wait": "waits", "stay": "stays"}


def counted(count: int, noun: str, verb: str = "", spec: str = "d") -> str:
    """Return a count with its noun, and a verb, in the plural unless it is one.

    Args:
        count: the number.
        noun: in the singular; its plural ends in ``s``.
        verb: in the plural: ``are``, ``were``, ``have``, ``wait`` or ``stay``.
        spec: the format of the number, such as ``,``.
    """
    parts = [f"{count:{spec}}", noun if count == 1 else f"{noun}s"]
    return " ".join([*parts, _OF_ONE[verb] if count == 1 else verb] if verb else parts)
