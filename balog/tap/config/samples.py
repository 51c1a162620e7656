"""A JSON Schema from an example of a config: each value shows the type that is wanted in its place."""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from typing import Any, Union, get_origin

import msgspec

from balog.problems import suggest
from balog.tap.errors import TapError

__all__ = ["Maybe", "optional", "schema_from_example", "with_optional"]

_PLAIN: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    list: {"type": "array"},
    dict: {"type": "object"},
    datetime: {"type": "string", "format": "date-time"},
    date: {"type": "string", "format": "date"},
    Any: {},
    None: {},
    type(None): {"type": "null"},
}


class Maybe(msgspec.Struct, frozen=True):
    """See ``optional``."""

    example: Any
    default: Any = msgspec.UNSET


def optional(example: Any, default: Any = msgspec.UNSET) -> Maybe:
    """Mark a setting of a sample as one that need not be there: ``{"page_size": optional(int, default=100)}``.

    Args:
        example: a value or a type, as for one that must be there.
        default: what the tap gets where the config has none; without it the setting is just not there.
    """
    return Maybe(example, default)


def schema_from_example(example: Any, path: str = "$") -> dict[str, Any]:
    """Give the JSON Schema that an example stands for.

    A dict is an object whose names are required but for those made by ``optional``; a list an array of what its first
    item is; a type (``str``, ``int | None``, ``Literal["a", "b"]``, ``datetime``) itself; None anything.

    Raises:
        TapError: an example of something that JSON has not.
    """
    if isinstance(example, Mapping):
        return _object(example, path)
    if isinstance(example, (list, tuple)):
        items = {"items": schema_from_example(example[0], f"{path}[0]")} if example else {}
        return {"type": "array", **items}
    kind = example if _is_type(example) else type(example) if example is not None else None
    if kind in _PLAIN:
        return dict(_PLAIN[kind])
    try:
        found: dict[str, Any] = msgspec.json.schema(kind)
    except (TypeError, ValueError) as error:
        raise TapError(f"config_spec: {path}: {example!r:.80} is no example of a setting: {error}") from None
    if "$defs" in found:
        raise TapError(
            f"config_spec: {path}: {kind!r:.80} has parts of its own; write them as a dict, or name it alone"
        )
    return found


def _object(example: Mapping[str, Any], path: str) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    required = []
    for name, said in example.items():
        if not isinstance(name, str):
            raise TapError(f"config_spec: {path}: {name!r:.80} is no name of a setting")
        if isinstance(said, Maybe):
            properties[name] = schema_from_example(said.example, f"{path}.{name}")
            if said.default is not msgspec.UNSET:
                properties[name]["default"] = said.default
        else:
            properties[name] = schema_from_example(said, f"{path}.{name}")
            required.append(name)
    schema: dict[str, Any] = {"type": "object"}
    if properties:
        schema["properties"] = properties
    if required:
        schema["required"] = required
    return schema


def with_optional(schema: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Let settings of a sample's schema be left out: names, with dots for those inside of others.

    Raises:
        TapError: the sample has no such name.
    """
    for name in names:
        *outer, last = name.split(".")
        place = schema
        for part in outer:
            place = place.get("properties", {}).get(part, {})
        if last not in place.get("required", ()):
            known = [*place.get("required", ())]
            raise TapError(f"config_spec: optional {name!r} is not in the sample; {suggest(last, known)}")
        place["required"] = [one for one in place["required"] if one != last]
    return schema


def _is_type(example: Any) -> bool:
    """Tell a type from a value, also ``int | None`` and ``Literal[…]``."""
    return isinstance(example, (type, types.UnionType)) or get_origin(example) is not None or example in (Any, Union)
