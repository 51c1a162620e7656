"""Parse TOML, with the line of each table and key."""

from __future__ import annotations

import datetime
import math
import re
import sys
from collections.abc import Callable
from typing import Any

from balog.config.contents import decode_text, place
from balog.config.document import Document, Places, key_path
from balog.config.variables import Substitute
from balog.errors import ConfigError, MissingExtraError

if sys.version_info >= (3, 11):
    import tomllib
else:
    try:
        import tomli as tomllib
    except ImportError:
        raise MissingExtraError("a TOML config", "config") from None

_WHERE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_NAME = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""
_NAMES = rf"{_NAME}(?:[ \t]*\.[ \t]*{_NAME})*"
_LINE = re.compile(rf"(?P<table>\[\[?)[ \t]*(?P<names>{_NAMES})[ \t]*\]\]?|(?P<key>{_NAMES})[ \t]*=")


def parse_toml(
    data: bytes, source: str, float_hook: Callable[[str], Any] | None, substitute: Substitute | None
) -> Document:
    """Parse a TOML file. Dates and times become texts of RFC 3339.

    Args:
        data: UTF-8, with or without a byte order mark.
        source: the file, for errors.
        float_hook: converts the text of each number with a fraction or an exponent; None for floats.
        substitute: replaces the variables in a text; None leaves texts as they are.

    Raises:
        ConfigError: it is not TOML (with line and column).
    """
    text = decode_text(data, source)
    try:
        read = tomllib.loads(text, parse_float=float_hook or float)
    except tomllib.TOMLDecodeError as error:
        where = _WHERE.search(str(error))
        reason = str(error)[: where.start() if where else None]
        end = text.count("\n") + 1, len(text) - text.rfind("\n")
        line, column = map(int, where.groups()) if where and where[1] else end
        raise ConfigError(f"not TOML: {reason[:1].lower()}{reason[1:]}", place(source, line, column)) from None
    except RecursionError:
        raise ConfigError("nested too deep to be a config", source) from None
    problems: list[tuple[str, str]] = []
    return Document(_plain(read, "$", substitute, problems), problems, lambda: _places(text))


def _plain(value: Any, path: str, substitute: Substitute | None, problems: list[tuple[str, str]]) -> Any:
    """Return a value as JSON decodes it, with variables replaced."""
    if isinstance(value, dict):
        return {name: _plain(item, key_path(path, name), substitute, problems) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item, f"{path}[{number}]", substitute, problems) for number, item in enumerate(value)]
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, float) and not math.isfinite(value):
        problems.append(("is not a finite number", path))
        return 0.0
    if isinstance(value, str) and substitute is not None and "$" in value:
        value, reason = substitute(value)
        if reason:
            problems.append((reason, path))
    return value


def _places(text: str) -> Places:
    """Return the places of tables and keys that begin a line; those of inline values are their key's."""
    found: dict[str, tuple[int, int]] = {"$": (1, 1)}
    counts: dict[str, int] = {}
    table = "$"
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.lstrip(" \t")
        match = _LINE.match(stripped)
        if match is None:
            continue
        at = (number, len(line) - len(stripped) + 1)
        names = [name.strip("\"'") for name in re.findall(_NAME, match["names"] or match["key"])]
        if match["key"]:
            found.setdefault(_path(table, names, counts), at)
            continue
        table = _path("$", names[:-1], counts)
        table = key_path(table, names[-1])
        if match["table"] == "[[":
            counts[table] = counts.get(table, -1) + 1
            found.setdefault(table, at)
        table += f"[{counts[table]}]" if table in counts else ""
        found.setdefault(table, at)
    return found


def _path(path: str, names: list[str], counts: dict[str, int]) -> str:
    for name in names:
        path = key_path(path, name)
        path += f"[{counts[path]}]" if path in counts else ""
    return path
