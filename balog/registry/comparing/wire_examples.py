"""Examples of messages that one side encodes and the other misreads, as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from google.protobuf import message_factory

from balog.errors import EventError
from balog.registry.protobuf.descriptors import is_map
from balog.registry.protobuf.message import CompiledMessage


def show(writer: CompiledMessage, reader: CompiledMessage, path: Sequence[Any], values: Sequence[Any]) -> Any:
    """Encode a message with one schema, and decode it with the other.

    Args:
        path: the writer's fields that lead from the payload to the message in question.
        values: pairs of a field of that message and its value; None for an empty message.

    Returns:
        ``{"written": …, "read": …}``, the JSON of the payload on both sides, or ``{"written": …, "refused": "reason"}``
        if the other side cannot decode it. None if both sides are equal.
    """
    root = message_factory.GetMessageClass(writer.descriptor)()
    here = root
    for field in path:
        here = _enter(here, field)
    for field, value in values:
        _put(here, field, value)
    wire = root.SerializePartialToString(deterministic=True)
    try:
        written = writer.decode(wire)
    except EventError:  # the writer itself rejects it
        return None
    try:
        read = reader.decode(wire)
    except EventError as error:
        return {"written": written, "refused": str(error)}
    if written == read:
        return None
    _thin(written, read)
    return {"written": written, "read": read}


def _thin(one: Any, two: Any) -> None:
    """Remove the fields that are 0 or empty on both sides."""
    if isinstance(one, dict) and isinstance(two, dict):
        for key in [key for key in one if key in two]:
            if one[key] == two[key] and (not one[key] or one[key] == "0"):
                del one[key], two[key]
            else:
                _thin(one[key], two[key])
    elif isinstance(one, list) and isinstance(two, list):
        for here, there in zip(one, two):
            _thin(here, there)


def _enter(message: Any, field: Any) -> Any:
    held = getattr(message, field.name)
    if is_map(field):
        return held[_default(field.message_type.fields_by_name["key"])]
    if field.is_repeated:
        return held.add()
    held.SetInParent()
    return held


def _put(message: Any, field: Any, value: Any) -> None:
    if field.message_type is not None and not is_map(field):
        if value is None:
            _enter(message, field)
        else:
            for _ in range(value):
                _enter(message, field)
    elif is_map(field):
        kind = field.message_type.fields_by_name["value"]
        held, key = getattr(message, field.name), _default(field.message_type.fields_by_name["key"])
        if kind.message_type is not None:
            held[key].SetInParent()
        else:
            held[key] = value
    elif field.is_repeated:
        getattr(message, field.name).extend(value if isinstance(value, list) else [value])
    else:
        setattr(message, field.name, value)


def _default(field: Any) -> Any:
    return field.default_value
