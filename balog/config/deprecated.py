"""Old names of options and keys: accepted, and reported once."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from balog.errors import complain


def rename_deprecated_keys(document: Any, type: Any, source: str) -> None:
    """Rename the old keys of a document to those of its struct, which names them in ``DEPRECATED_KEYS``.

    One line on stderr reports each old key. A document that has both is left as it is: the old key is then unknown.
    """
    for old, new in getattr(type, "DEPRECATED_KEYS", {}).items():
        if isinstance(document, dict) and old in document and new not in document:
            document[new] = document.pop(old)
            report_deprecated(source, repr(old), repr(new))


@lru_cache
def report_deprecated(source: str, old: str, new: str) -> None:
    """Write one line about an old name to stderr, once for each source."""
    complain(f"{source}: {old} is deprecated and will be removed; write {new}")
