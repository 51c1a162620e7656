"""Names for generated code, from any text: valid, distinct, and none that Python or the code itself uses."""

from __future__ import annotations

import builtins
import keyword
import re
import unicodedata
from collections.abc import Iterable

from balog.common.errors import ConfigError

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
