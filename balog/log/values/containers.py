"""Containers that msgspec can encode, and copies of their parts."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec


def is_container(value: Any) -> bool:
    """Return whether msgspec encodes the parts of a value; see ``is_container_type``."""
    return is_container_type(type(value))


def is_container_type(kind: type) -> bool:
    """Return whether values have parts that msgspec encodes: built-in containers, Structs, Raw, dataclasses, attrs."""
    return issubclass(kind, _CONTAINERS) or hasattr(kind, "__dataclass_fields__") or hasattr(kind, "__attrs_attrs__")


_CONTAINERS = (dict, list, tuple, set, frozenset, msgspec.Struct, msgspec.Raw)


def length_of(value: Any) -> int:
    """Return the number of a container's parts; 8 if that can't be read."""
    try:
        return len(value)
    except Exception:
        return 8


def parts_of(value: Any) -> list[Any] | dict[Any, Any] | Any:
    """Copy a container's items as a list, or its members as a dict; another thread may change it meanwhile.

    Items of a set of texts or of integers are sorted.
    Subclasses of the built-in containers are read as msgspec reads them, without their own methods.
    """
    if isinstance(value, dict):
        return dict.copy(value)
    if isinstance(value, list):
        return list.copy(value)
    if isinstance(value, tuple):
        return list(tuple.__getitem__(value, slice(None)))
    if isinstance(value, (set, frozenset)):
        items = list(frozenset.union(frozenset(), value))
        return sorted(items) if {str}.issuperset(map(type, items)) or {int}.issuperset(map(type, items)) else items
    if isinstance(value, msgspec.Struct):
        return _struct_parts(value)
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
    else:
        names = [field.name for field in type(value).__attrs_attrs__]
    members = {name: getattr(value, name) for name in names if hasattr(value, name)}
    return {name: member for name, member in members.items() if member is not msgspec.UNSET}


def _struct_parts(value: msgspec.Struct) -> list[Any] | dict[str, Any]:
    """Return the parts of a Struct as msgspec encodes them: with its tag, its renamed fields and without defaults."""
    config = value.__struct_config__
    members = [getattr(value, name) for name in value.__struct_fields__]
    if config.array_like:
        return members if config.tag is None else [config.tag, *members]
    parts: dict[str, Any] = {}
    if config.tag is not None and config.tag_field is not None:
        parts[config.tag_field] = config.tag
    defaults = value.__struct_defaults__
    defaults = (msgspec.NODEFAULT,) * (len(members) - len(defaults)) + defaults
    for name, member, default in zip(value.__struct_encode_fields__, members, defaults, strict=True):
        is_default = member is default or (
            type(member) in (list, dict, set) and not member and getattr(default, "factory", None) is type(member)
        )
        if member is not msgspec.UNSET and not (config.omit_defaults and is_default):
            parts[name] = member
    return parts
