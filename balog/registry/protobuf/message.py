"""A compiled payload type: validates JSON, and converts between the wire format and JSON."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import accumulate
from typing import Any

import msgspec
from google.protobuf import json_format, message_factory, unknown_fields
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError

from balog.common.errors import EventError, split_refusal
from balog.registry.json_compiler import compile_schema
from balog.registry.json_schema import describe_violation
from balog.registry.protobuf import descriptors
from balog.registry.protobuf.compiler import run_protoc
from balog.registry.protobuf.descriptors import Steps
from balog.registry.protobuf.rules import Rules
from balog.registry.protobuf.schema import make_json_schema
from balog.registry.reasons import json_path
from balog.registry.schema import MAX_SECONDS, TOO_LONG, InvalidSchemaError, SchemaViolation

MAX_VIOLATIONS = 100
MAX_DEPTH = 100
"""Limit of messages inside each other below the payload, which is that of protobuf."""

MAX_DEFAULTS = 1_000_000
"""Limit of fields without presence in a message and its nested messages: they are written even if they are empty."""


class CompiledMessage:
    """One version of a payload type. Thread-safe. See ``compile_proto``.

    A payload is the JSON of the message plus ``cls_type`` and ``version``, unless the message has fields of these
    names.

    Attributes:
        name: the full name of the message.
        descriptor: its descriptor in google.protobuf.
        pool: the pool of the descriptor, which holds only its file and its imports.
    """

    def __init__(self, descriptor: Any, pool: Any) -> None:
        descriptors.check_storable(descriptor)
        self.name: str = descriptor.full_name
        self.descriptor, self.pool = descriptor, pool
        self.rules = Rules(descriptor, pool)
        self._class = message_factory.GetMessageClass(descriptor)
        self._shape = compile_schema(make_json_schema(descriptor, [], is_open=False))
        self._decode, self._encode = msgspec.json.Decoder().decode, msgspec.json.Encoder().encode
        names = {field.json_name for field in descriptor.fields}
        self._type_fields = [name for name in descriptors.TYPE_FIELDS if name not in names]
        self._widths = {
            here.full_name: sum(not field.has_presence for field in here.fields)
            for here in descriptors.reachable_messages(descriptor)
        }
        self._own = [name for name in descriptors.TYPE_FIELDS if name in names]

    def worst_seconds(self, payload: bytes) -> float:
        """See ``PayloadValidator``. Only rules count: the rest is Python code, which lets other threads run."""
        return self.rules.worst_seconds(len(payload))

    def check(self, payload: bytes) -> list[SchemaViolation]:
        """See ``PayloadValidator``; returns at most 100 violations."""
        message, violations = self._parsed(payload)
        if message is not None:
            violations = self._broken(message)
        return _violations(violations)

    def read(self, wire: bytes) -> tuple[bytes, list[SchemaViolation]]:
        """Convert an encoded message to stored JSON, ProtoJSON with every field that has no presence, and validate it.

        Returns:
            The JSON, and the violations.

        Raises:
            EventError: the bytes are not a message of this type, have unknown fields, or have a value that JSON cannot
                represent.
        """
        message, document = self._written(wire)
        return self._encode(document), _violations(self._broken(message))

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON Schema (draft 2020-12) of payloads as plain data."""
        return make_json_schema(self.descriptor, self._type_fields)

    def _parsed(self, payload: bytes) -> tuple[Any, list[tuple[Steps, str]]]:
        try:
            document = self._decode(payload)
        except (msgspec.DecodeError, UnicodeError) as error:
            return None, [((), f"not JSON: {split_refusal(error)[0]}")]
        except RecursionError:
            return None, [((), "nested too deep")]
        if isinstance(document, dict):
            for name in self._type_fields:
                document.pop(name, None)
        try:
            if (wrong := self._misshapen(document)) is not None:
                return None, [wrong]
            return json_format.ParseDict(document, self._class(), max_recursion_depth=MAX_DEPTH + 1), []
        except (json_format.ParseError, ValueError, OverflowError) as error:
            return None, [_refusal(error)]

    def _misshapen(self, document: Any) -> tuple[Steps, str] | None:
        """Return why a document does not have the one spelling that is stored, which other readers than ours relax."""
        if self._shape.is_valid(document):
            return None
        steps, reason = describe_violation(next(self._shape.iter_errors(document)))
        return tuple(steps), reason

    def _written(self, wire: bytes) -> tuple[Any, Any]:
        try:
            message = self._class.FromString(wire)
        except (DecodeError, UnicodeError):
            raise EventError(f"is no encoded {self.name}: cut off, nested too deep, or of another type") from None
        errors = _missing_fields(message) or _find_unknown_fields(message, wire)
        if errors:
            raise EventError(errors[0][1], json_path(errors[0][0]))
        if len(wire) // 2 * max(self._widths.values()) > MAX_DEFAULTS and self._has_too_many_defaults(message):
            raise EventError(f"more than {MAX_DEFAULTS:,} fields, most of them empty")
        try:
            document = json_format.MessageToDict(message, always_print_fields_with_no_presence=True)
            wrong = self._misshapen(document)
        except (json_format.Error, ValueError, OverflowError) as error:
            wrong = _refusal(error)
        if wrong is not None:
            raise EventError(wrong[1], json_path(wrong[0]))
        for name in self._own:  # an empty field means that the sender did not set it
            if not document.get(name):
                document.pop(name, None)
        return message, document

    def _has_too_many_defaults(self, message: Any) -> bool:
        """Return whether a message and its nested messages have more fields without presence than may be written.

        Each of them is written, although two bytes on the wire are enough for a message with any number of fields.
        """
        widths = (self._widths.get(here.DESCRIPTOR.full_name, 0) for _, here in descriptors.walk(message))
        return any(total > MAX_DEFAULTS for total in accumulate(widths))

    def _broken(self, message: Any) -> list[tuple[Steps, str]]:
        if missing := _missing_fields(message):
            return missing
        if self.rules.worst_seconds(message.ByteSize()) > MAX_SECONDS and self.rules.seconds(message) > MAX_SECONDS:
            return [((), TOO_LONG)]
        return self.rules.violations(message)


_WITHIN = re.compile(r"Failed to (?:parse|serialize) (\w+) field: ")
_ONEOF = re.compile(r'Message type "[\w.]+" should not have multiple "(\w+)" oneof fields')


def _refusal(error: Exception) -> tuple[Steps, str]:
    """Return the place and the reason of an error of ``json_format``, without the value that its text has."""
    text, steps = str(error), list[str]()
    while (within := _WITHIN.match(text)) is not None:
        steps.append(within[1])
        text = text[within.end() :]
    if (several := _ONEOF.match(text)) is not None:
        return tuple(steps), f"only one field of {several[1]} may be given"
    return tuple(steps), "nested too deep" if "too deep" in text else "has a value that its type does not have"


def _violations(violations: list[tuple[Steps, str]]) -> list[SchemaViolation]:
    return [SchemaViolation(json_path(steps), reason) for steps, reason in violations[:MAX_VIOLATIONS]]


@lru_cache(maxsize=256)
def compile_message(source: bytes, message: str) -> CompiledMessage:
    """See ``compile_proto``."""
    pool = _pool(source)
    return CompiledMessage(descriptors.choose_message(pool, message), pool)


@lru_cache(maxsize=256)
def _pool(source: bytes) -> Any:
    if not source.strip():
        raise InvalidSchemaError("an empty file has no message")
    return descriptors.load_pool(run_protoc(source))


def _find_unknown_fields(message: Any, wire: bytes) -> list[tuple[Steps, str]]:
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
        for steps, here in descriptors.walk(type(message).FromString(wire), ())
        for field in unknown_fields.UnknownFieldSet(here)
    ]


def _missing_fields(message: Any) -> list[tuple[Steps, str]]:
    """Return the required fields (of proto2) that a message does not have."""
    if message.IsInitialized():
        return []
    return [
        ((*steps, field.json_name), "is required")
        for steps, here in descriptors.walk(message)
        for field in here.DESCRIPTOR.fields
        if field.is_required and not here.HasField(field.name)
    ]


def _unknown_reason(message: Any, unknown_field: Any) -> str:
    field = message.DESCRIPTOR.fields_by_number.get(unknown_field.field_number)
    if field is None:
        return f"field number {unknown_field.field_number} is not in {message.DESCRIPTOR.full_name}"
    if field.type == FieldDescriptor.TYPE_ENUM:
        return f"{field.name} has a value that {field.enum_type.full_name} has not"
    return f"{field.name} is encoded as another type"
