"""Paths on local disk, as configs, options and URLs of topics name them."""

from __future__ import annotations

import os
import re

from balog.errors import ConfigError

__all__ = ["check_variables", "local_path"]

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_VARIABLE = re.compile(r"\$\{[^}]*\}|^\$[A-Za-z_]\w*(?=/|$)")


def local_path(text: str, field: str = "path") -> str:
    """Return a path on local disk, with a leading ``~`` expanded.

    Args:
        text: the path as the user wrote it.
        field: what the path is called in the config, for errors.

    Raises:
        ConfigError: a URL, a variable that nothing expands, or ``~`` of a user without a home folder. A folder with
            such a name would be made where nobody looks for it.
    """
    if _URL.match(text):
        raise ConfigError("is a URL; give a path on local disk", path=field)
    check_variables(text, field)
    if not text.startswith("~"):
        return text
    expanded = os.path.expanduser(text)
    if expanded.startswith("~"):
        raise ConfigError(f"{text.partition('/')[0]!r:.40} has no home folder; write the path out", path=field)
    return expanded


def check_variables(text: str, field: str = "path") -> None:
    """Refuse ``${NAME}`` anywhere, and ``$NAME`` as the first folder: nothing expands them.

    Raises:
        ConfigError: the text holds one.
    """
    if found := _VARIABLE.search(text):
        raise ConfigError(f"holds {found[0]:.60}, and variables are not expanded here; write the value", path=field)
