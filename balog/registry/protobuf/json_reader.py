"""Reads stored JSON into a message, and reports every violation with its place.

ProtoJSON readers accept more than writers produce: both names of a field, and numbers of an enum. Stored JSON becomes
table columns, so this reader accepts only the spelling that the writer produces.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from balog.registry.protobuf.descriptors import WRAPPERS, is_map
from balog.registry.protobuf.json_writer import MAX_DEPTH
from balog.registry.protobuf.scalars import Convert, ValueRejectedError, make_converter, make_key_converter

Steps = tuple[str | int, ...]
Violations = list[tuple[Steps, str]]

Read = Callable[[Any, Any, Steps, int, Violations], None]
"""Arguments: a JSON value, the message to fill, the path, the depth (1 for the payload), and the list of violations."""

_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)", re.ASCII)
_DURATION = re.compile(r"-?\d{1,12}(?:\.\d{1,9})?s", re.ASCII)
_TOO_DEEP = f"nested more than {MAX_DEPTH} deep"


def make_reader(message: Any) -> Read:
    """Return a function that reads messages of a descriptor."""
    return _message(message, {})


def _message(message: Any, made: dict[str, Read]) -> Read:
    name = message.full_name
    if name in WRAPPERS:
        return _converted(make_converter(message.fields_by_name["value"]), "value")
    if name in _OWN:
        return _OWN[name]
    if name not in made:
        # A recursive message refers to its own reader, which is not complete yet.
        made[name] = lambda *arguments: made[name](*arguments)  # noqa: PLW0108
        made[name] = _plain(message, made)
    return made[name]


def _plain(message: Any, made: dict[str, Read]) -> Read:
    full_name = message.full_name
    fields = {field.json_name: (field.name, *_field(field, made)) for field in message.fields}
    json_names = {field.name: field.json_name for field in message.fields}
    oneofs = [[field.json_name for field in oneof.fields] for oneof in message.oneofs if len(oneof.fields) > 1]

    def read(value: Any, into: Any, steps: Steps, depth: int, violations: Violations) -> None:
        if not isinstance(value, dict):
            violations.append((steps, f"want an object, {full_name}"))
            return
        if depth > MAX_DEPTH:
            violations.append((steps, _TOO_DEEP))
            return
        for key, given in value.items():
            found = fields.get(key)
            if found is None:
                hint = f"; it is called {json_names[key]} in JSON" if key in json_names else ""
                violations.append(((*steps, key), f"is no field of {full_name}{hint}"))
                continue
            name, takes_null, convert, inner = found
            if given is None and not takes_null:
                continue
            if convert is None:
                inner(given, into, (*steps, key), depth, violations)
                continue
            try:
                setattr(into, name, convert(given))
            except ValueRejectedError as refusal:
                violations.append(((*steps, key), str(refusal)))
        for names in oneofs:
            both = [name for name in names if value.get(name) is not None]
            if len(both) > 1:
                violations.append((steps, f"only one of {' and '.join(both)} may be given"))

    return read


def _field(field: Any, made: dict[str, Read]) -> tuple[bool, Convert | None, Any]:
    """Return whether null is a value of the field, a converter for ``setattr``, and else a reader into the message."""
    name = field.name
    if is_map(field):
        return False, None, _map(field, made)
    if field.is_repeated:
        return False, None, _list_of(field, made)
    if field.message_type is None:
        null = field.enum_type is not None and field.enum_type.full_name == "google.protobuf.NullValue"
        return null, make_converter(field), None
    inner = _message(field.message_type, made)

    def read(value: Any, into: Any, steps: Steps, depth: int, violations: Violations) -> None:
        held = getattr(into, name)
        held.SetInParent()
        inner(value, held, steps, depth + 1, violations)

    return field.message_type.full_name == "google.protobuf.Value", None, read


def _list_of(field: Any, made: dict[str, Read]) -> Read:
    name = field.name
    convert = make_converter(field) if field.message_type is None else None
    inner = _message(field.message_type, made) if field.message_type is not None else None

    def read(value: Any, into: Any, steps: Steps, depth: int, violations: Violations) -> None:
        if not isinstance(value, list):
            violations.append((steps, "want an array"))
            return
        items = getattr(into, name)
        for index, item in enumerate(value):
            if inner is not None:
                inner(item, items.add(), (*steps, index), depth + 1, violations)
                continue
            try:
                items.append(convert(item))  # type: ignore[misc]
            except ValueRejectedError as refusal:
                violations.append(((*steps, index), str(refusal)))

    return read


def _map(field: Any, made: dict[str, Read]) -> Read:
    name = field.name
    keys = make_key_converter(field.message_type.fields_by_name["key"])
    kind = field.message_type.fields_by_name["value"]
    convert = make_converter(kind) if kind.message_type is None else None
    inner = _message(kind.message_type, made) if kind.message_type is not None else None

    def read(value: Any, into: Any, steps: Steps, depth: int, violations: Violations) -> None:
        if not isinstance(value, dict):
            violations.append((steps, "want an object, for a map"))
            return
        items = getattr(into, name)
        for text, item in value.items():
            here = (*steps, text)
            try:
                key = keys(text)
                if inner is not None:
                    inner(item, items[key], here, depth + 1, violations)
                else:
                    items[key] = convert(item)  # type: ignore[misc]
            except ValueRejectedError as refusal:
                violations.append((here, str(refusal)))

    return read


def _converted(convert: Convert, name: str) -> Read:
    def read(value: Any, into: Any, steps: Steps, depth: int, violations: Violations) -> None:
        try:
            setattr(into, name, convert(value))
        except ValueRejectedError as refusal:
            violations.append((steps, str(refusal)))

    return read


def _json_string(pattern: re.Pattern[str] | None, wanted: str) -> Read:
    def read(value: Any, into: Any, steps: Steps, depth: int, violations: Violations) -> None:
        try:
            if not isinstance(value, str) or (pattern is not None and not pattern.fullmatch(value)):
                raise ValueError
            into.FromJsonString(value)
        except (ValueError, OverflowError):
            violations.append((steps, f"want {wanted}"))

    return read


def _value(value: Any, into: Any, steps: Steps, depth: int, violations: Violations) -> None:
    if value is None:
        into.null_value = 0
    elif isinstance(value, bool):
        into.bool_value = value
    elif isinstance(value, str):
        into.string_value = value
    elif isinstance(value, (int, float)):
        try:
            into.number_value = float(value)
        except OverflowError:
            violations.append((steps, "is beyond what a double holds"))
    elif depth > MAX_DEPTH:
        violations.append((steps, _TOO_DEEP))
    elif isinstance(value, dict):
        into.struct_value.SetInParent()
        _struct(value, into.struct_value, steps, depth + 1, violations)
    else:
        into.list_value.SetInParent()
        _list(value, into.list_value, steps, depth + 1, violations)


def _struct(value: Any, into: Any, steps: Steps, depth: int, violations: Violations) -> None:
    if not isinstance(value, dict):
        violations.append((steps, "want an object"))
        return
    for key, item in value.items():
        _value(item, into.fields[key], (*steps, key), depth, violations)


def _list(value: Any, into: Any, steps: Steps, depth: int, violations: Violations) -> None:
    if not isinstance(value, list):
        violations.append((steps, "want an array"))
        return
    for index, item in enumerate(value):
        _value(item, into.values.add(), (*steps, index), depth, violations)


_OWN: dict[str, Read] = {
    "google.protobuf.Timestamp": _json_string(_TIMESTAMP, "a time as RFC 3339 says, 2026-11-20T09:14:14.903Z"),
    "google.protobuf.Duration": _json_string(_DURATION, "a duration in seconds, 1.5s"),
    "google.protobuf.FieldMask": _json_string(None, "the paths of fields, with commas between them"),
    "google.protobuf.Value": _value,
    "google.protobuf.Struct": _struct,
    "google.protobuf.ListValue": _list,
}
