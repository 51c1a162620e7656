"""JSON types, their names in messages, and the targets of a schema's references."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from balog.tap.errors import TapError

MAX_DEPTH = 60
"""Maximum nesting of a schema or a config."""


def is_number(value: Any) -> bool:
    """Return whether a value is a number; booleans are not."""
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
"""By type name: whether a value has the type."""

_WORDS = {
    "string": "a text",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
    "array": "a list",
    "object": "an object",
}


def type_of(value: Any) -> str:
    """Return the name of a value's narrowest JSON type."""
    for name in ("null", "boolean", "integer", "number", "string", "array"):
        if TYPES[name](value):
            return name
    return "object"


def type_words(kind: str) -> str:
    """Return a type's name for messages, such as ``an integer``."""
    return _WORDS[kind]


def listed(words: Iterable[str]) -> str:
    """Join alternatives: ``one, two or three``."""
    *rest, last = words
    return f"{', '.join(rest)} or {last}" if rest else last


def types_of(schema: Any) -> tuple[str, ...]:
    """Return the types in a schema's ``type``; () if it has none."""
    declared = schema.get("type") if isinstance(schema, Mapping) else None
    return (declared,) if isinstance(declared, str) else tuple(declared or ())


def resolve_reference(schema: Any, root: Any) -> Any:
    """Return the target of a schema's ``$ref``, or the schema itself.

    Raises:
        TapError: the reference has no target, or is circular.
    """
    seen = set()
    while isinstance(schema, Mapping) and "$ref" in schema:
        reference = schema["$ref"]
        if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")) or reference in seen:
            raise TapError(f"config schema: the $ref {reference!r} is not a place in the schema")
        seen.add(reference)
        schema = root
        for part in reference[2:].split("/") if reference != "#" else ():
            name = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(schema, Mapping) or name not in schema:
                raise TapError(f"config schema: the $ref {reference!r} has no target; there is no {name!r}")
            schema = schema[name]
    return schema
