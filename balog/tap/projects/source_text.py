"""Python source from values, and names from texts.

Every text of a document is quoted, and lines are broken as ruff breaks them. Names are valid, distinct, and none that
Python or the code itself uses.
"""

from __future__ import annotations

import builtins
import keyword
import re
import unicodedata
from collections.abc import Iterable, Sequence
from importlib.resources import files
from string import Template
from typing import Any
from unicodedata import east_asian_width

from balog.common.errors import ConfigError

WIDTH = 120
_MAX_SENTENCE = 90


def fill(template: str, **values: str) -> str:
    """Return the text of a file of a project: its template, with a value for each ``${name}``."""
    text = (files("balog.tap.projects") / "templates" / f"{template}.tmpl").read_text(encoding="utf-8")
    return Template(text).substitute(values)


def quoted(text: str) -> str:
    """Return a text as a literal, in the quotes that ruff chooses."""
    inner = repr(text)[1:-1]
    if repr(text)[0] == '"' or text.count('"') > text.count("'"):
        return repr(text)
    return '"' + inner.replace("\\'", "'").replace('"', '\\"') + '"'


class Code(str):
    """Source that is written as it is; made by the generator, never from a document."""

    __slots__ = ()


def literal(value: Any, indent: int = 0, used: int = 0) -> str:
    """Return JSON, or ``Code`` in it, as a Python expression, on one line if it fits.

    Args:
        indent: that of the line on which it starts.
        used: the characters before and after it on its line.
    """
    if isinstance(value, Code):
        return str(value)
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, dict):
        opening, closing = "{", "}"
        pairs = [(f"{quoted(str(name))}: ", inner) for name, inner in value.items()]
    elif isinstance(value, (list, tuple)):
        opening, closing = "[", "]"
        pairs = [("", inner) for inner in value]
    else:
        return repr(value)
    return _broken(opening, pairs, closing, indent, used)


def call(start: str, arguments: Sequence[tuple[str, Any]], end: str = ")", indent: int = 0) -> str:
    """Return a call or a signature, on one line if it fits.

    Args:
        start: what stands before the arguments, with the bracket.
        arguments: for each, what stands before its value, and the value.
        end: what stands after them.
        indent: that of the line.
    """
    return " " * indent + start + _broken("", arguments, end, indent, len(start))


def assigned(name: str, value: Any, indent: int = 4) -> str:
    """Return an assignment; a text that fits only on a line of its own stands in parentheses."""
    pad, text = " " * indent, literal(value, indent, len(name) + 3)
    is_long = type(value) is str and indent + len(name) + 3 + _width(text) > WIDTH >= indent + 4 + _width(text)
    return f"{pad}{name} = (\n{pad}    {text}\n{pad})" if is_long else f"{pad}{name} = {text}"


def _broken(opening: str, pairs: Sequence[tuple[str, Any]], closing: str, indent: int, used: int) -> str:
    line = opening + ", ".join(f"{before}{literal(inner)}" for before, inner in pairs) + closing
    if not pairs or (indent + used + _width(line) <= WIDTH and "\n" not in line):
        return line
    pad = " " * (indent + 4)
    lines = [f"{pad}{before}{literal(inner, indent + 4, len(before) + 1)},\n" for before, inner in pairs]
    return f"{opening}\n{''.join(lines)}{' ' * indent}{closing}"


def _width(text: str) -> int:
    """Return the columns of a text, as ruff counts them: wide characters have two."""
    return sum(2 if east_asian_width(char) in "WF" else 1 for char in text)


def sentence(text: str, fallback: str) -> str:
    """Return a text as one line for a docstring or a comment: no quotes, no escapes, nothing invisible."""
    shown = "".join(char if char.isprintable() and char not in '"\\`' else " " for char in text[:2000])
    line = " ".join(shown.split()) or fallback
    if len(line) > _MAX_SENTENCE:
        line = line[: _MAX_SENTENCE - 2].rsplit(" ", 1)[0] + " …"
    return line if line.endswith((".", "…", "!", "?")) else f"{line}."


_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_MAX_LENGTH = 60
_PROJECT = re.compile(r"tap-[a-z0-9]+(-[a-z0-9]+)*")

_PYTHON = frozenset([*keyword.kwlist, *keyword.softkwlist, *dir(builtins)])


def snake(text: str, fallback: str) -> str:
    """Return ``list_pets`` for ``listPets``; the fallback if no ASCII letter is left."""
    return _joined(text, "_", fallback)


def pascal(text: str, fallback: str) -> str:
    """Return ``PetStore`` for ``pet-store``; the fallback if no ASCII letter is left."""
    name = "".join(word.capitalize() for word in _words(text))[:_MAX_LENGTH]
    return name if name and not name[0].isdigit() else f"{fallback}{name}"


def project_name(text: str) -> str:
    """Check the name of a new tap, such as ``tap-petstore``, and return it.

    Raises:
        ConfigError: it is not a name of this form.
    """
    if not _PROJECT.fullmatch(text) or len(text) > _MAX_LENGTH:
        shown = _joined(text, "-", "cool").removeprefix("tap-")
        raise ConfigError(
            f"{text!r:.100} is not a tap's name; expected tap- and lower-case characters, such as tap-{shown}"
        )
    return text


class UniqueNames:
    """Names that are given once.

    Args:
        reserved: names that are never given, besides Python's keywords and builtins.
    """

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._taken = {*reserved, *_PYTHON}

    def take(self, name: str) -> str:
        """Return the name, with a number at its end if it is taken."""
        candidate, number = name, 1
        while candidate in self._taken:
            number += 1
            candidate = f"{name}_{number}"
        self._taken.add(candidate)
        return candidate


def _words(text: str) -> list[str]:
    plain = unicodedata.normalize("NFKD", text[:1000]).encode("ascii", "ignore").decode()
    return [word.lower() for word in _WORD.findall(plain)]


def _joined(text: str, separator: str, fallback: str) -> str:
    name = separator.join(_words(text))[:_MAX_LENGTH].rstrip(separator)
    return name if name and not name[0].isdigit() else f"{fallback}{separator}{name}".rstrip(separator)
