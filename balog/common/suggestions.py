"""Suggest the known name that was probably meant by an unknown one."""

from __future__ import annotations

from collections.abc import Collection


def nearest(name: str, known: Collection[str], likeness: float = 0.6) -> str | None:
    """Return the known name that is most like ``name``, in whatever case, or None.

    Args:
        likeness: difflib's ratio that a name must have at least; from 0.8 on only slips of typing have it.
    """
    import difflib  # only errors need it

    names = {one.lower(): one for one in known}
    found = difflib.get_close_matches(name.lower(), names, n=1, cutoff=likeness)
    return names[found[0]] if found else None


def suggest(name: str, known: Collection[str], limit: int | None = None) -> str:
    """Return the end of an error about an unknown name: ``"; did you mean 'this'?"``, or the names that are known.

    Args:
        limit: names to list at most when none is like ``name``; 0 lists none.

    Returns:
        "" when there is no name to show.
    """
    if (found := nearest(name, known)) is not None:
        return f"; did you mean {found!r}?"
    shown = list(known)[:limit]
    more = ", …" if len(shown) < len(known) else ""
    return f"; there are {', '.join(shown)}{more}" if shown else ""
