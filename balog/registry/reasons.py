"""Errors of a JSON Schema validator as one line for people: the place in the payload, and the reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from balog.common.text import cut, printable

_MAX_TEXT = 100


def json_path(steps: Sequence[str | int]) -> str:
    """Return a JSONPath (RFC 9535) in one printable line: ``$.lines[2].price``, ``$['a b']``."""
    path = "$"
    for step in steps:
        if isinstance(step, int):
            path += f"[{step}]"
        elif step.isidentifier() and step.isascii():
            path += f".{shorten(step)}"
        else:
            path += "['" + shorten(step).replace("\\", "\\\\").replace("'", "\\'") + "']"
    return path


_LIMITS = {
    "minimum": "is less than {}",
    "maximum": "is more than {}",
    "exclusiveMinimum": "is not more than {}",
    "exclusiveMaximum": "is not less than {}",
    "minLength": "is shorter than {} characters",
    "maxLength": "is longer than {} characters",
    "minItems": "has less than {} items",
    "maxItems": "has more than {} items",
    "minProperties": "has less than {} members",
    "maxProperties": "has more than {} members",
}


def describe_error(error: Any) -> str:
    """Return the reason of a jsonschema-rs error, without a value of the payload."""
    kind, details = error.kind, _details(error.kind)
    name = str(kind.name)
    if name in _LIMITS:
        return _LIMITS[name].format(details.get("limit"))
    if name in _REASONS:
        return _REASONS[name](details)
    if name in ("additionalProperties", "unevaluatedProperties"):
        names = [_quoted(key) for key in details["unexpected"]]
        return f"has members that it may not have: {', '.join(names[:5])}{', …' if len(names) > 5 else ''}"
    if name in ("anyOf", "oneOf") or name.startswith("oneOf"):
        matched = name != "anyOf" and "multiple" in type(kind).__name__.lower()
        return "is more than one of the alternatives at once" if matched else "is none of the alternatives"
    if name == "not":
        inner = details["schema"]
        is_choice = isinstance(inner, dict) and list(inner) == ["not"]
        return "is none of the alternatives, or more than one" if is_choice else "is what it may not be"
    if name == "falseSchema" and error.schema_path[-1:] == ["additionalProperties"]:
        return "has members that it may not have"  # of a schema without properties all of them
    return _OTHERS.get(name, f"breaks {name}")


_REASONS: dict[str, Callable[[dict[str, Any]], str]] = {
    "required": lambda details: f"{_quoted(details['property'])} is missing",
    "type": lambda details: f"expected {' or '.join(sorted(details['types'], key='null'.__eq__))}",
    "const": lambda details: f"expected {_json(details['expected_value'])}",
    "enum": lambda details: f"expected one of {_json(details['options'])}",
    "pattern": lambda details: (
        f"does not match {shorten(details['pattern'])}"
        if "pattern" in details
        else "takes too many steps for its pattern"
    ),
    "format": lambda details: f"is no {details['format']}",
    "multipleOf": lambda details: f"is no multiple of {details['multiple_of']}",
    "propertyNames": lambda details: f"has a member whose name may not be: {describe_error(details['error'])}",
}
_OTHERS = {
    "uniqueItems": "has an item twice",
    "contains": "has not as many of the items as it should",
    "falseSchema": "may not be there",
    "additionalItems": "has more items than it may",
    "unevaluatedItems": "has items that it may not have",
}


def _details(kind: Any) -> dict[str, Any]:
    return {name: getattr(kind, name) for name in kind.__match_args__ if name != "context"}


def _json(value: Any) -> str:
    return shorten(msgspec.json.encode(value).decode())


def _quoted(name: str) -> str:
    return f"'{shorten(name)}'"


def shorten(text: str) -> str:
    """Return a text in at most 100 printable characters."""
    return cut(printable(text[: _MAX_TEXT + 1]), _MAX_TEXT)
