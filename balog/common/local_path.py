"""Check and expand paths on local disk from configs, options and URLs of topics."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

from balog.common.errors import ConfigError

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_VARIABLE = re.compile(r"\$\{[^}]*\}|^\$[A-Za-z_]\w*(?=/|$)")


def local_path(text: str, field: str = "path") -> str:
    """Return a path on local disk, with a leading ``~`` expanded.

    Args:
        text: the original path.
        field: its name in the config, for errors.

    Raises:
        ConfigError: the path is a URL, has a variable, which nothing expands, or ``~`` of an unknown user.
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
    """Reject ``${NAME}`` anywhere and ``$NAME`` as the first folder, because variables are not expanded.

    Raises:
        ConfigError: the text has a variable.
    """
    if match := _VARIABLE.search(text):
        raise ConfigError(f"holds {match[0]:.60}, and variables are not expanded here; write the value", path=field)


NEW = "does not exist yet; the first event creates it"
"""Note on a folder or a topic."""


def check_folder(path: Path) -> str:
    """Check that files can be written to a folder. Return a note if it does not exist yet, else "".

    Raises:
        OSError: it cannot be written to or created.
    """
    nearest = next(each for each in (path.absolute(), *path.absolute().parents) if each.exists())
    code = errno.EACCES if nearest.is_dir() else errno.ENOTDIR
    if code == errno.ENOTDIR or not os.access(nearest, os.R_OK | os.W_OK | os.X_OK):
        raise OSError(code, os.strerror(code), str(nearest))
    return "" if nearest == path.absolute() else NEW


def state_folder(problem: str) -> Path:
    """Return ``$XDG_STATE_HOME/balog``, for state of this user on this machine; ``~/.local/state/balog`` by default.

    Raises:
        ConfigError: this user has no home directory; ``problem`` is the text.
    """
    state = os.environ.get("XDG_STATE_HOME", "")
    try:
        return (Path(state) if os.path.isabs(state) else Path("~/.local/state").expanduser()) / "balog"
    except RuntimeError:
        raise ConfigError(problem) from None
