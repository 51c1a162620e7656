"""Texts in lines for people: counts, texts of others on one line, and the known name that was probably meant."""

from __future__ import annotations

from collections.abc import Collection

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


def nearest(name: str, known: Collection[str], likeness: float = 0.6) -> str | None:
    """Return the known name that is most like ``name``, in whatever case, or None.

    Args:
        likeness: difflib's ratio that a name must have at least; from 0.8 on only slips of typing have it.
    """
    import difflib  # only errors need it

    names = {known_name.lower(): known_name for known_name in known}
    matches = difflib.get_close_matches(name.lower(), names, n=1, cutoff=likeness)
    return names[matches[0]] if matches else None


def suggest(name: str, known: Collection[str], limit: int | None = None) -> str:
    """Return the end of an error about an unknown name: ``"; did you mean 'this'?"``, or the names that are known.

    Args:
        limit: names to list at most when none is like ``name``; 0 lists none.

    Returns:
        "" when there is no name to show.
    """
    if (match := nearest(name, known)) is not None:
        return f"; did you mean {match!r}?"
    shown = list(known)[:limit]
    more = ", …" if len(shown) < len(known) else ""
    return f"; there are {', '.join(shown)}{more}" if shown else ""
