"""A compiled payload type: JSON checked, wire to JSON and back."""

from __future__ import annotations

import threading
from functools import lru_cache
from math import inf
from typing import Any

import msgspec
from google.protobuf import message_factory
from google.protobuf.message import DecodeError

from balog.errors import EventError, split_refusal
from balog.registry import worker_pool
from balog.registry.protobuf import descriptors
from balog.registry.protobuf.compiler import run_protoc
from balog.registry.protobuf.json_reader import Steps, make_reader
from balog.registry.protobuf.json_writer import UnwritableError, make_writer
from balog.registry.protobuf.rules import Rules
from balog.registry.protobuf.schema import make_json_schema
from balog.registry.protobuf.unknown_fields import has_more_defaults, missing, unknown
from balog.registry.reasons import json_path
from balog.registry.schema import InvalidSchemaError, Schema, SchemaViolation
from balog.registry.worker_pool import MAX_SECONDS, check_apart, compile_apart, read_apart

__all__ = ["CompiledMessage", "compiled"]

MAX_FAULTS = 100
MAX_DEFAULTS = 1_000_000
"""How many fields without presence a message and all in it may have: they are written though they are empty."""


class CompiledMessage:
    """One version of a payload type; may be used from any thread. See ``compile_proto``.

    A payload is the message's JSON with ``cls_type`` and ``version`` beside its fields, unless it has fields
    of those names.

    Attributes:
        name: the message's full name.
        descriptor: google.protobuf's descriptor of it.
        pool: the pool that it lives in, alone with what its file imports.
    """

    def __init__(self, descriptor: Any, pool: Any, schema: Schema) -> None:
        self._schema = schema
        descriptors.check_storable(descriptor)
        self.name: str = descriptor.full_name
        self.descriptor, self.pool = descriptor, pool
        self.rules = Rules(descriptor, pool)
        if self.worst_seconds(b"") == inf and not worker_pool.is_worker:
            compile_apart(schema)
        self._class = message_factory.GetMessageClass(descriptor)
        self._read, self._write = make_reader(descriptor), make_writer(descriptor)
        self._decode, self._encode = msgspec.json.Decoder().decode, msgspec.json.Encoder().encode
        names = {field.json_name for field in descriptor.fields}
        self._beside = [name for name in descriptors.BESIDE if name not in names]
        self._widest = max(
            sum(not field.has_presence for field in here.fields) for here in descriptors.reached(descriptor)
        )
        self._own = [name for name in descriptors.BESIDE if name in names]

    def worst_seconds(self, payload: bytes) -> float:
        """See ``PayloadValidator``. Only rules are counted: all else is Python, during which others go on."""
        return self.rules.worst_seconds(len(payload))

    def check(self, payload: bytes) -> list[SchemaViolation]:
        """See ``PayloadValidator``; at most 100 faults."""
        if self.worst_seconds(payload) > MAX_SECONDS and not worker_pool.is_worker:
            return check_apart(self._schema, payload)
        return self.check_here(payload)

    def check_here(self, payload: bytes) -> list[SchemaViolation]:
        """Check in this process, however long it takes."""
        message, found = self._parsed(payload)
        if message is not None:
            found += _apart(self._broken(message), found)
        return _faults(found)

    def to_json(self, wire: bytes) -> bytes:
        """Give the JSON that is stored of an encoded message: ProtoJSON, with every field that has no presence.

        Raises:
            EventError: it is no message of this type, has fields that the type does not, or has a value that JSON has
                not. Rules are not asked: see ``read``.
        """
        return self._encode(self._written(wire)[1])

    def read(self, wire: bytes) -> tuple[bytes, list[SchemaViolation]]:
        """Give the JSON that is stored of an encoded message, and the faults that ``check`` would find in it, at once.

        Raises:
            EventError: as of ``to_json``.
            WorkBusyError: as of ``check``.
        """
        if self.worst_seconds(wire) > MAX_SECONDS and not worker_pool.is_worker:
            return read_apart(self._schema, wire)
        return self.read_here(wire)

    def read_here(self, wire: bytes) -> tuple[bytes, list[SchemaViolation]]:
        """Read in this process, however long it takes."""
        message, document = self._written(wire)
        return self._encode(document), _faults(self._broken(message))

    def from_json(self, payload: bytes) -> bytes:
        """Encode a payload. Rules are not asked.

        Raises:
            EventError: with the first fault: it is not JSON of this type.
        """
        message, found = self._parsed(payload)
        found = found or missing(message)
        if found:
            raise EventError(found[0][1], json_path(found[0][0]))
        return bytes(message.SerializeToString(deterministic=True))

    def json_schema(self) -> dict[str, Any]:
        """Describe payloads in JSON Schema (draft 2020-12), as plain data: see ``schema``."""
        return make_json_schema(self.descriptor, self.pool, self.rules, self._beside)

    def _parsed(self, payload: bytes) -> tuple[Any, list[tuple[Steps, str]]]:
        try:
            document = self._decode(payload)
        except (msgspec.DecodeError, UnicodeError) as error:
            return None, [((), f"not JSON: {split_refusal(error)[0]}")]
        except RecursionError:
            return None, [((), "nested too deep")]
        if isinstance(document, dict):
            for name in self._beside:
                document.pop(name, None)
        message, found = self._class(), list[tuple[Steps, str]]()
        self._read(document, message, (), 1, found)
        return message, found

    def as_read(self, wire: bytes) -> Any:
        """Give an encoded message as plain data, as readers of protobuf do: what their schema has not is skipped.

        Raises:
            EventError: it is no message of this type, is without a field that is required, or has a value that JSON has
                not.
        """
        return self._written(wire, skips=True)[1]

    def _written(self, wire: bytes, skips: bool = False) -> tuple[Any, Any]:
        try:
            message = self._class.FromString(wire)
        except (DecodeError, UnicodeError):
            raise EventError(f"is no encoded {self.name}: cut off, nested too deep, or of another type") from None
        found = missing(message) or ([] if skips else unknown(message, wire))
        if found:
            raise EventError(found[0][1], json_path(found[0][0]))
        if len(wire) // 2 * self._widest > MAX_DEFAULTS and has_more_defaults(message, MAX_DEFAULTS):
            raise EventError(f"more than {MAX_DEFAULTS:,} fields, most of them empty")
        try:
            document = self._write(message, 1)
            for name in self._own:  # who left it empty did not say it
                if not document.get(name):
                    document.pop(name, None)
            return message, document
        except UnwritableError as error:
            raise EventError(error.reason, json_path(error.steps)) from None

    def _broken(self, message: Any) -> list[tuple[Steps, str]]:
        return missing(message) + self.rules.faults(message)


def _apart(broken: list[tuple[Steps, str]], found: list[tuple[Steps, str]]) -> list[tuple[Steps, str]]:
    """Leave out what is only broken because a value was not taken: rules of the same place, above it or below it."""
    return [
        (steps, reason) for steps, reason in broken
        if not any(steps[: len(other)] == other[: len(steps)] for other, _ in found)
    ]  # fmt: skip


def _faults(found: list[tuple[Steps, str]]) -> list[SchemaViolation]:
    return [SchemaViolation(json_path(steps), reason) for steps, reason in found[:MAX_FAULTS]]


def compiled(source: bytes, message: str) -> CompiledMessage:
    """See ``compile_proto``."""
    with _LOCKS[hash(source) % len(_LOCKS)]:
        return _compiled(source, message)


_LOCKS = [threading.Lock() for _ in range(16)]
"""So that several threads that meet the same content at once wait for one protoc, and few for another's."""


@lru_cache(maxsize=256)
def _compiled(source: bytes, message: str) -> CompiledMessage:
    pool = _pool(source)
    return CompiledMessage(descriptors.choose_message(pool, message), pool, Schema("", "", "protobuf", source, message))


@lru_cache(maxsize=256)
def _pool(source: bytes) -> Any:
    if not source.strip():
        raise InvalidSchemaError("an empty file has no message")
    return descriptors.load_pool(run_protoc(source))
