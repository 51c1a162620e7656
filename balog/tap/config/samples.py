"""JSON Schemas from example configs: each value of the example shows the type of its setting."""

from __future__ import annotations

import types
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, Union, get_origin

import msgspec

from balog.tap.errors import TapError

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
    """Mark a setting of a sample as optional: ``{"page_size": optional(int, default=100)}``.

    Args:
        example: a value or a type, as for a required setting.
        default: the value for configs without the setting; without a default the setting stays absent.
    """
    return Maybe(example, default)


def schema_from_example(example: Any, path: str = "$") -> dict[str, Any]:
    """Return the JSON Schema of an example.

    A dict is an object; its names are required, except those with ``optional``. A list is an array of its first item's
    type. A type (``str``, ``int | None``, ``Literal["a", "b"]``, ``datetime``) is that type. None allows any value.

    Raises:
        TapError: JSON has no such type.
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
        schema: dict[str, Any] = msgspec.json.schema(kind)
    except (TypeError, ValueError) as error:
        raise TapError(f"config_spec: {path}: {example!r:.80} cannot be a setting: {error}") from None
    parts = schema.get("anyOf", ())
    if parts and all(part.keys() == {"type"} for part in parts):  # as of ``int | None``
        schema = {"type": [part["type"] for part in parts]}
    if "$defs" in schema:
        raise TapError(
            f"config_spec: {path}: {kind!r:.80} has parts of its own; write them as a dict, or name it alone"
        )
    return schema


def _object(example: Mapping[str, Any], path: str) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    required = []
    for name, setting in example.items():
        if not isinstance(name, str):
            raise TapError(f"config_spec: {path}: {name!r:.80} cannot be the name of a setting")
        if isinstance(setting, Maybe):
            properties[name] = schema_from_example(setting.example, f"{path}.{name}")
            if setting.default is not msgspec.UNSET:
                properties[name]["default"] = setting.default
        else:
            properties[name] = schema_from_example(setting, f"{path}.{name}")
            required.append(name)
    schema: dict[str, Any] = {"type": "object"}
    if properties:
        schema["properties"] = properties
    if required:
        schema["required"] = required
    return schema


def _is_type(example: Any) -> bool:
    """Return whether an example is a type, including ``int | None`` and ``Literal[…]``."""
    return isinstance(example, (type, types.UnionType)) or get_origin(example) is not None or example in (Any, Union)
