"""Finds fields of an encoded message that the schema does not have, and required fields that are missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.protobuf import unknown_fields
from google.protobuf.descriptor import FieldDescriptor

from balog.registry.protobuf.descriptors import is_map
from balog.registry.protobuf.json_reader import Steps


def find_unknown_fields(message: Any, wire: bytes) -> list[tuple[Steps, str]]:
    """Return the fields of an encoded message that its type does not have, or has with another wire type.

    A payload has one version, so an unknown field is an error of the sender, and could not be stored.

    Args:
        message: the message decoded from ``wire``; its unknown fields are removed.
    """
    before = message.ByteSize()
    message.DiscardUnknownFields()
    if message.ByteSize() == before:
        return []
    return [
        (steps, _unknown_reason(here, field))
        for steps, here in _walk(type(message).FromString(wire), ())
        for field in unknown_fields.UnknownFieldSet(here)
    ]


def missing_fields(message: Any) -> list[tuple[Steps, str]]:
    """Return the required fields (of proto2) that a message does not have."""
    if message.IsInitialized():
        return []
    return [
        ((*steps, field.json_name), "is required")
        for steps, here in _walk(message, ())
        for field in here.DESCRIPTOR.fields
        if field.is_required and not here.HasField(field.name)
    ]


def has_more_defaults(message: Any, most: int) -> bool:
    """Return whether a message and its nested messages have more than ``most`` fields without presence.

    Each of them is written, although two bytes on the wire are enough for an empty message with any number of fields.
    """
    count = 0
    sizes: dict[str, int] = {}
    for _, here in _walk(message, ()):
        name = here.DESCRIPTOR.full_name
        if name not in sizes:
            sizes[name] = sum(not field.has_presence for field in here.DESCRIPTOR.fields)
        count += sizes[name]
        if count > most:
            return True
    return False


def _unknown_reason(message: Any, found: Any) -> str:
    field = message.DESCRIPTOR.fields_by_number.get(found.field_number)
    if field is None:
        return f"field number {found.field_number} is not in {message.DESCRIPTOR.full_name}"
    if field.type == FieldDescriptor.TYPE_ENUM:
        return f"{field.name} has a value that {field.enum_type.full_name} has not"
    return f"{field.name} is encoded as another type"


def _walk(message: Any, steps: Steps) -> Iterator[tuple[Steps, Any]]:
    yield steps, message
    for field, value in message.ListFields():
        here = (*steps, field.json_name)
        if field.message_type is None:
            continue
        if is_map(field):
            if field.message_type.fields_by_name["value"].message_type is not None:
                for key in value:
                    text = ("true" if key else "false") if isinstance(key, bool) else str(key)
                    yield from _walk(value[key], (*here, text))
        elif field.is_repeated:
            for index, item in enumerate(value):
                yield from _walk(item, (*here, index))
        else:
            yield from _walk(value, here)
