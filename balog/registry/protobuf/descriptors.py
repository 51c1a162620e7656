"""The message descriptors of a compiled file, in a pool of their own, so that versions of a type do not collide."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool

from balog.registry.protobuf.compiler import FILE
from balog.registry.schema import InvalidSchemaError

_GOOGLE = "google.protobuf."
WRAPPERS = frozenset(
    f"{_GOOGLE}{kind}Value"
    for kind in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
_OWN_FORM = WRAPPERS | {
    f"{_GOOGLE}{name}" for name in ("Timestamp", "Duration", "FieldMask", "Struct", "Value", "ListValue")
}
_RESERVED = ("google.protobuf", "buf.validate")
MAX_MESSAGES = 1000
TYPE_FIELDS = ("cls_type", "version")
"""The members of a payload in addition to the fields of its message."""


Steps = tuple[str | int, ...]
"""A path in the JSON of a message."""


def load_pool(files: descriptor_pb2.FileDescriptorSet) -> Any:
    """Return a ``DescriptorPool`` with the compiled files.

    Raises:
        InvalidSchemaError: the installed runtime does not know the edition, or the file declares a package of protobuf
            itself.
    """
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        if file.name == FILE and any(f"{file.package}.".startswith(f"{name}.") for name in _RESERVED):
            raise InvalidSchemaError(f"the package {file.package} is reserved for protobuf")
        try:
            pool.Add(file)
            pool.FindFileByName(file.name)
        except (KeyError, TypeError) as error:  # what protoc lets pass, such as two fields of one name in JSON
            reason = " ".join(str(error).split())[:300]
            raise InvalidSchemaError(f"the installed protobuf package rejects {file.name}: {reason}") from None
    return pool


def choose_message(pool: Any, name: str) -> Any:
    """Return the descriptor of the payload's message; see ``compile_proto``.

    Raises:
        InvalidSchemaError: there is no message of this name, or several candidates.
    """
    file = pool.FindFileByName(FILE)
    tops = list(file.message_types_by_name.values())
    if name:
        for full in (name, f"{file.package}.{name}"):
            try:
                message = pool.FindMessageTypeByName(full)
            except KeyError:
                continue
            if message.file is file or message.file.name == FILE:
                return message
        raise InvalidSchemaError(f"has no message {name[:200]}; {_listed(tops)}")
    used = {inner.full_name for top in tops for inner in reachable_messages(top) if inner is not top}
    free = [top for top in tops if top.full_name not in used]
    if len(free) != 1:
        raise InvalidSchemaError(f"the message of the payload is ambiguous; name it; {_listed(tops)}")
    return free[0]


def reachable_messages(message: Any) -> Iterator[Any]:
    """Yield a message and its nested messages, each once, without map entries and the contents of well-known types."""
    waiting, seen = [message], {message.full_name}
    while waiting:
        here = waiting.pop()
        yield here
        if here.full_name in _OWN_FORM:
            continue
        for field in here.fields:
            inner = field.message_type
            if inner is not None and is_map(field):
                inner = inner.fields_by_name["value"].message_type
            if inner is not None and inner.full_name not in seen:
                seen.add(inner.full_name)
                waiting.append(inner)


def walk(message: Any, steps: Steps = ()) -> Iterator[tuple[Steps, Any]]:
    """Yield a message and the messages in it, each with its path in JSON."""
    yield steps, message
    for field, value in message.ListFields():
        here = (*steps, field.json_name)
        if field.message_type is None:
            continue
        if is_map(field):
            if field.message_type.fields_by_name["value"].message_type is not None:
                for key in value:
                    text = ("true" if key else "false") if isinstance(key, bool) else str(key)
                    yield from walk(value[key], (*here, text))
        elif field.is_repeated:
            for index, item in enumerate(value):
                yield from walk(item, (*here, index))
        else:
            yield from walk(value, here)


def check_storable(message: Any) -> None:
    """Reject a message that cannot be stored as JSON of one known form.

    Raises:
        InvalidSchemaError: the message holds a ``google.protobuf.Any`` or an extendable message, is a well-known type,
            has a ``cls_type`` or ``version`` that is not a string, or reaches more than 1,000 messages.
    """
    if message.full_name in _OWN_FORM:
        raise InvalidSchemaError(f"{message.full_name} cannot be a payload: its JSON is not an object with fields")
    for field in message.fields:
        if field.json_name in TYPE_FIELDS and (field.type != field.TYPE_STRING or field.is_repeated):
            raise InvalidSchemaError(
                f"{field.full_name} is not a string, and the {field.json_name} of a payload is a string"
            )
    for number, here in enumerate(reachable_messages(message)):
        if number >= MAX_MESSAGES:
            raise InvalidSchemaError(f"{message.full_name} reaches more than {MAX_MESSAGES} messages")
        if here.full_name == f"{_GOOGLE}Any":
            raise InvalidSchemaError(
                "has a google.protobuf.Any, whose type is unknown; use a oneof of the possible messages, or bytes"
            )
        if here.is_extendable and here.file.name == FILE:
            raise InvalidSchemaError(f"{here.full_name} is extendable, and extensions cannot be stored")


def is_plain(message: Any) -> bool:
    """Return whether the JSON of a message is an object with a member for each field."""
    return message.full_name not in _OWN_FORM


def is_map(field: Any) -> bool:
    """Return whether a field is a ``map<…>``."""
    return bool(
        field.message_type is not None and field.message_type.has_options and field.message_type.GetOptions().map_entry
    )


def _listed(messages: list[Any]) -> str:
    names = [message.full_name for message in messages]
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return f"there are {', '.join(names[:10])}{more}" if names else "there is none in the file"
