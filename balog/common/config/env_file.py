"""Read files of lines ``NAME=value``."""

from __future__ import annotations

import os
from collections.abc import Collection

from balog.common.config.contents import read_bytes
from balog.common.errors import ConfigError


def load_env(path: str | os.PathLike[str], names: Collection[str]) -> dict[str, str]:
    """Read a file of lines ``NAME=value``.

    Empty lines, ``#`` comments, ``export`` and quotes around a value are allowed.

    Raises:
        ConfigError: the file cannot be read, a line has another form, or a name is not one of ``names``.
    """
    values = {}
    for number, line in enumerate(read_bytes(path).decode("utf-8-sig", "replace").splitlines(), 1):
        text = line.strip().removeprefix("export ")
        if not text or text.startswith("#"):
            continue
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or name not in names:
            raise ConfigError(f"expected NAME=value, with a name of {', '.join(names)}", str(path), f"line {number}")
        values[name] = value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value
    return values
