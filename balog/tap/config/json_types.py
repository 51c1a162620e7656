"""The types of JSON, what people call them, and where a schema's reference leads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from balog.tap.errors import TapError

__all__ = ["MAX_DEPTH", "TYPES", "in_words", "is_number", "kind_of", "kinds_of", "listed", "target_of"]

MAX_DEPTH = 60
"""Levels of a schema, or of a config, that are followed."""


def is_number(value: Any) -> bool:
    """Tell whether a value is a number; true and false are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


TYPES: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: is_number(value) and (isinstance(value, int) or value.is_integer()),
    "number": is_number,
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, Mapping),
}
"""By the type's name, what tells whether a value is of it."""

_WORDS = {
    "string": "a text",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
    "array": "a list",
    "object": "an object",
}


def kind_of(value: Any) -> str:
    """Give the narrowest type of a value."""
    for name in ("null", "boolean", "integer", "number", "string", "array"):
        if TYPES[name](value):
            return name
    return "object"


def in_words(kind: str) -> str:
    """Say a type in words: an integer, a list."""
    return _WORDS[kind]


def listed(words: Iterable[str]) -> str:
    """Join words: one, two or three."""
    *rest, last = words
    return f"{', '.join(rest)} or {last}" if rest else last


def kinds_of(schema: Any) -> tuple[str, ...]:
    """Give the types that a schema's own ``type`` names; () where it names none."""
    said = schema.get("type") if isinstance(schema, Mapping) else None
    return (said,) if isinstance(said, str) else tuple(said or ())


def target_of(schema: Any, root: Any) -> Any:
    """Give the schema that a schema's ``$ref`` leads to, or the schema itself.

    Raises:
        TapError: it leads nowhere, or round.
    """
    seen = set()
    while isinstance(schema, Mapping) and "$ref" in schema:
        reference = schema["$ref"]
        if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")) or reference in seen:
            raise TapError(f"config schema: the $ref {reference!r} does not lead to a place in the schema")
        seen.add(reference)
        schema = root
        for part in reference[2:].split("/") if reference != "#" else ():
            name = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(schema, Mapping) or name not in schema:
                raise TapError(f"config schema: the $ref {reference!r} leads nowhere; there is no {name!r}")
            schema = schema[name]
    return schema
