"""A parsed config file, in whichever format: plain data, its problems and the places of its values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from balog.common.text import printable

Places = Mapping[str, tuple[int, int]]
"""The line and column, both from 1, of each value or its key, by JSONPath."""


class Document(NamedTuple):
    """A config file as plain data.

    Attributes:
        data: objects, lists, texts, numbers, booleans and None, as JSON decodes.
        problems: the reason and the JSONPath of each part that is wrong in itself.
        find_places: returns the places of all values.
    """

    data: Any
    problems: list[tuple[str, str]]
    find_places: Callable[[], Places]


TWICE = "this key is there twice; expected once"
MAX_TWICE = 20
MAX_DEPTH = 200
TOO_DEEP = "nested too deep to be a config"


def key_path(path: str, key: Any) -> str:
    """Return the JSONPath of an object's member, as the errors of configs have it."""
    return f"{path}.{printable(str(key)[:100])}"
