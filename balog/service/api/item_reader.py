"""Reads the items of a request: validates each against its type, and returns an event or a rejection."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, Raw

from balog.common.errors import BalogError, EventError, split_refusal
from balog.event import Event, check_keys, decode, decode_checked, encode
from balog.registry import PayloadValidator, Registry, Schema, SchemaViolation, UnknownTypeError, UnknownVersionError
from balog.registry.json_schema import is_deeper
from balog.service.api.bodies import HALF_PAIR, half_pair_path, path_of, values_of
from balog.service.api.tokens import TokenEntry
from balog.service.intake.batch import AcceptedEvent
from balog.service.settings import ServiceConfig
from balog.sinks.service import Problem

_MAX_TYPE = 200
_MAX_PROBLEMS = 20
_SAMPLE_BYTES = 64 << 10
_SAMPLE_SECONDS = 0.2
"""Payloads are validated outside of the event loop if 64 KiB of them could take longer."""


class RejectedItem(NamedTuple):
    """A rejected item: the HTTP status, and each problem with its path.

    ``type`` and ``version`` are those that the item declares, if they could be read. ``is_known`` is whether the
    registry has them.
    """

    status: int
    problems: tuple[Problem, ...]
    id: str = ""
    type: str = ""
    version: str = ""
    is_known: bool = False


_NOT_READ = RejectedItem(503, (Problem("$", "not validated: the service stops; send it again"),))


class ProtobufParameters(NamedTuple):
    """The type, version and channel of a payload in protobuf, from the request's query."""

    type: str
    version: str | None
    channel: str | None


class SchemaNotCached(Exception):
    """A schema must be fetched first, or validation may take long. Either must not delay other requests."""


_AS_ZEROS = bytes.maketrans(b"123456789", b"000000000")
_TOO_MANY_DIGITS = b"0" * 309
"""The digits of the smallest integer that does not fit into a double."""

_members = msgspec.json.Decoder(dict[str, Raw])


class ItemReader:
    """Reads items. Thread-safe."""

    def __init__(self, registry: Registry, config: ServiceConfig) -> None:
        self._registry = registry
        self._limits = config.limits
        self._accepts_unknown = config.unknown_types == "accept"
        self._validators: dict[tuple[str, str | None], PayloadValidator | None] = {}
        self._latest: dict[str, str] = {}
        self._is_stopping = False

    def stop(self) -> None:
        """Reject the items that are not read yet with status 503."""
        self._is_stopping = True

    def forget(self) -> None:
        """Clear the cache, because the registry may have changed."""
        self._validators, self._latest = {}, {}

    def read(
        self,
        items: Sequence[bytes],
        caller: TokenEntry,
        key: str,
        protobuf: ProtobufParameters | None,
        *,
        may_wait: bool,
    ) -> list[AcceptedEvent | RejectedItem]:
        """Read items.

        Args:
            key: the idempotency key from which the ids of bare payloads are derived; "" for random ids.
            protobuf: parameters of a body in protobuf.
            may_wait: this thread may wait for a schema.

        Raises:
            SchemaNotCached: a schema is not cached or validation may take long, and ``may_wait`` is False.
        """
        outcomes: list[AcceptedEvent | RejectedItem] = []
        for index, item in enumerate(items):
            if self._is_stopping:
                outcomes.append(_NOT_READ)
                continue
            if len(item) > self._limits.event_bytes:
                problem = Problem("$", f"{len(item)} bytes; the limit is {self._limits.event_bytes}")
                outcomes.append(RejectedItem(413, (problem,)))
                continue
            fresh_id = _derived_id(f"{caller.name}\0{key}\0{index}", item) if key else ""
            declared = protobuf.type if protobuf is not None else ""
            try:
                outcomes.append(
                    self._read(item, caller, fresh_id, may_wait)
                    if protobuf is None
                    else self._read_protobuf(item, protobuf, caller, fresh_id, may_wait)
                )
            except EventError as error:
                outcomes.append(RejectedItem(422, (Problem(error.path, error.reason),), type=declared))
            except BalogError as error:
                outcomes.append(RejectedItem(503, (_not_available("$", error),), type=declared))
        return outcomes

    def _read(self, item: bytes, caller: TokenEntry, fresh_id: str, may_wait: bool) -> AcceptedEvent | RejectedItem:
        if is_deeper(item, self._limits.depth):
            return RejectedItem(422, (Problem("$", f"nested deeper than {self._limits.depth}"),))
        if not item.isascii():
            _check_utf8(item)
        document = check_keys(item)
        if len(item) >= len(_TOO_MANY_DIGITS) and _TOO_MANY_DIGITS in item.translate(_AS_ZEROS):
            _check_integers(document)
        if not isinstance(document, dict):
            raise _no_object(item)
        if "cls_type" in document:
            return self._wrap(item, document, caller, fresh_id, may_wait)
        if "schema" not in document:
            raise EventError("expected an event, with schema, header and payload, or a payload with cls_type")
        event = decode_checked(item, document) if "payload" in document else decode(item)
        return self._validate(event, caller, "$.payload", may_wait)

    def _wrap(
        self, item: bytes, document: dict[str, Any], caller: TokenEntry, fresh_id: str, may_wait: bool
    ) -> AcceptedEvent | RejectedItem:
        """Make an event from a bare payload. A payload without a version gets the latest one."""
        type = document["cls_type"]
        if not isinstance(type, str):
            raise EventError("expected a text", "$.cls_type")
        payload = Raw(item.strip())
        if "version" not in document and (latest := self._latest_version(type, may_wait)) is not None:
            payload = Raw(msgspec.json.encode({**_members.decode(item), "version": latest}))
        event = Event.new(_channel(type), payload, id=fresh_id)
        return self._validate(event, caller, "$", may_wait)

    def _read_protobuf(
        self, item: bytes, protobuf: ProtobufParameters, caller: TokenEntry, fresh_id: str, may_wait: bool
    ) -> AcceptedEvent | RejectedItem:
        if not may_wait:
            raise SchemaNotCached
        schema = self._schema(protobuf, caller)
        if schema.form != "protobuf":
            raise EventError(f"{schema.type} {schema.version} is described by JSON Schema; send JSON")
        from balog.registry.protobuf import compile_proto

        kind = compile_proto(schema.source, schema.message, f"{schema.type}/{schema.version}")
        inner, violations = kind.read(item)
        if len(inner) > self._limits.event_bytes:  # a byte on the wire may be many in JSON
            problem = Problem("$", f"{len(inner)} bytes as JSON; the limit is {self._limits.event_bytes}")
            return RejectedItem(413, (problem,), type=schema.type, version=schema.version)
        if is_deeper(inner, self._limits.depth):
            raise EventError(f"nested deeper than {self._limits.depth}")
        check_keys(inner)
        fields = _members.decode(inner)
        members = {"cls_type": schema.type, "version": schema.version, **fields}
        payload = Raw(msgspec.json.encode(members))
        event = Event.new(protobuf.channel or _channel(schema.type), payload, id=fresh_id)
        if "cls_type" in fields or "version" in fields:  # then it may say that it is of another type
            return self._validate(event, caller, "$", may_wait)
        return self._validate(event, caller, "$", may_wait, violations)

    def _validate(
        self,
        event: Event,
        caller: TokenEntry,
        path: str,
        may_wait: bool,
        violations: Sequence[SchemaViolation] | None = None,
    ) -> AcceptedEvent | RejectedItem:
        """Validate an event against its type; ``violations`` are those of its payload if they are known already."""
        try:
            payload = event.payload_view  # ensures that consumers can decode it
        except EventError as error:
            raise EventError(error.reason, path) from None
        type, version = payload.get("cls_type"), payload.get("version")
        declared_type = type if isinstance(type, str) else ""
        declared_version = version if isinstance(version, str) else ""

        def reject(status: int, *problems: Problem) -> RejectedItem:
            return RejectedItem(
                status, problems, event.header.id, declared_type[:_MAX_TYPE], declared_version[:_MAX_TYPE]
            )

        if type is not None and not declared_type:
            return reject(422, Problem(f"{path}.cls_type", "expected a text that names a type"))
        if len(declared_type) > _MAX_TYPE:
            return reject(422, Problem(f"{path}.cls_type", f"more than {_MAX_TYPE} characters"))
        if not caller.is_for(declared_type):
            return reject(403, Problem(f"{path}.cls_type", "the token is not for this type"))
        if not declared_type and not self._accepts_unknown:
            return reject(422, Problem(f"{path}.cls_type", "missing; expected the name of a type that is registered"))
        if version is not None and not declared_version:
            return reject(422, Problem(f"{path}.version", "expected a text, such as 1.0.0"))
        try:
            if violations is None:
                validator = (
                    self._validator(declared_type, declared_version or None, may_wait) if declared_type else None
                )
                violations = () if validator is None else self._check(validator, bytes(event.raw_payload), may_wait)
        except UnknownTypeError as error:
            return reject(422, Problem(f"{path}.cls_type", _unknown(error, caller)))
        except UnknownVersionError as error:
            return reject(422, Problem(f"{path}.version", str(error)))
        except BalogError as error:
            return reject(503, _not_available(path, error))
        if violations:
            problems_found = (
                Problem(path + violation.path.removeprefix("$"), violation.reason)
                for violation in violations[:_MAX_PROBLEMS]
            )
            return reject(422, *problems_found)._replace(is_known=True)
        return AcceptedEvent(event, encode(event))

    @staticmethod
    def _check(validator: PayloadValidator, payload: bytes, may_wait: bool) -> list[SchemaViolation]:
        """Return the violations of a payload.

        Raises:
            SchemaNotCached: a request of such payloads could take long, and ``may_wait`` is False.
        """
        if not may_wait and validator.worst_seconds(payload) * (_SAMPLE_BYTES / max(len(payload), 1)) > _SAMPLE_SECONDS:
            raise SchemaNotCached
        return validator.check(payload)

    def _validator(self, type: str, version: str | None, may_wait: bool) -> PayloadValidator | None:
        """Return the validator of a version, or None if unknown versions are accepted."""
        key = (type, version)
        known = self._validators  # `forget` may put another one there meanwhile
        cached_validator = known.get(key, UNSET)
        if cached_validator is not UNSET:
            return cached_validator
        if not may_wait:
            raise SchemaNotCached
        try:
            validator: PayloadValidator | None = self._registry.validator(type, version)
        except (UnknownTypeError, UnknownVersionError):
            if not self._accepts_unknown:
                raise
            validator = None
            if len(known) > 10_000:  # arbitrary names from clients
                known.clear()
        known[key] = validator
        return validator

    def _latest_version(self, type: str, may_wait: bool) -> str | None:
        latest = self._latest.get(type)
        if latest is None:
            if not may_wait:
                raise SchemaNotCached
            try:
                latest = self._latest[type] = self._registry.get(type).version
            except BalogError:  # reported when the payload is validated
                return None
        return latest

    def _schema(self, protobuf: ProtobufParameters, caller: TokenEntry) -> Schema:
        try:
            return self._registry.get(protobuf.type, protobuf.version)
        except UnknownTypeError as error:
            raise EventError(_unknown(error, caller)) from None
        except UnknownVersionError as error:
            raise EventError(str(error)) from None


def _not_available(path: str, error: BalogError) -> Problem:
    return Problem(path, f"the registry is not available: {error}")


def _unknown(error: UnknownTypeError, caller: TokenEntry) -> str:
    """Return the error text, with only those known types that the caller may use."""
    return str(UnknownTypeError(error.type, [type for type in error.known if caller.is_for(type)]))


def _no_object(item: bytes) -> EventError:
    """Return why an item is not a JSON object."""
    try:
        msgspec.json.decode(item)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        if path := half_pair_path(item):
            return EventError(HALF_PAIR, path)
        return EventError(f"not JSON: {split_refusal(error)[0]}")
    return EventError("expected a JSON object")


def _check_integers(document: Any) -> None:
    """Check that each integer of a document fits into a double.

    Raises:
        EventError: an integer does not fit; ``path`` is its path.
    """
    for step, value in values_of(document):
        if isinstance(value, int):
            try:
                float(value)
            except OverflowError:
                raise EventError("this number is out of range: no double can hold it", path_of(step)) from None


def _check_utf8(item: bytes) -> None:
    try:
        str(item, "utf-8")
    except UnicodeDecodeError as error:
        raise EventError(f"not UTF-8, at byte {error.start}") from None


def _channel(type: str) -> str:
    if not 1 <= len(type) <= _MAX_TYPE:
        raise EventError(f"expected the name of a type, of at most {_MAX_TYPE} characters", "$.cls_type")
    return type


def _derived_id(key: str, item: bytes) -> str:
    """Return an id that is the same when the request is retried, and different for every other item."""
    digest = hashlib.blake2b(item, digest_size=16, key=hashlib.sha256(key.encode()).digest())
    return "LG" + digest.hexdigest()
