"""Publish lines of text to a topic: events, or plain objects that become events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import resources
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import Raw

from balog.common.errors import EventError, MessageError
from balog.event import FACILITY_VERSION, MAX_EVENT_BYTES, Event, Level, check_keys, decode, encode
from balog.event.batches import split
from balog.registry import Registry, SchemaViolation, UnknownTypeError, UnknownVersionError, open_registry
from balog.registry.json_schema import JsonValidator
from balog.topics.base import Message, Topic

T = TypeVar("T")

Check = Callable[[Event], None]
"""Raises EventError for an invalid event."""

_BATCH = 500
_BATCH_BYTES = 4 << 20


Refuse = Callable[[Message, MessageError], object]
"""Called with a message that its topic can never accept, and the reason."""


def as_message(
    line: bytes, check: Check | None = None, key_of: Callable[[Event], str | None] = lambda event: None
) -> Message:
    """Parse a line as an event.

    Args:
        key_of: returns the message's key.

    Raises:
        EventError: the line is not an event, or the check rejects it.
    """
    event = decode(line)
    if check is not None:
        check(event)
    return Message(event.header.id, encode(event), key_of(event))


def wrap(line: bytes, channel: str, level: Level, members: Mapping[str, Any]) -> bytes:
    """Return an event whose payload is a line with a JSON object.

    Args:
        members: fields to put before the object's own, such as ``cls_type``; the object's own take precedence.

    Raises:
        EventError: the line is not a JSON object, has a duplicate key, or the channel is invalid.
    """
    if len(line) > MAX_EVENT_BYTES:
        raise EventError(f"{len(line)} bytes; the limit is {MAX_EVENT_BYTES}")
    try:
        fields = msgspec.json.decode(line, type=dict[str, Raw])
        check_keys(line)
        payload = msgspec.json.encode({**members, **fields})
        return encode(decode(encode(Event.new(channel, Raw(payload), level=level))))
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise EventError(f"expected a JSON object: {error}") from None


def publish_parts(publish: Callable[[Sequence[Message]], T], batch: Sequence[Message], refuse: Refuse) -> Iterator[T]:
    """Publish a batch without messages that the topic can never accept; yield the result of each part of it.

    A backend that accepts a part of a batch, rejects the rest and does not keep ids may store that part twice.
    """
    try:
        yield publish(batch)
    except MessageError as error:
        if len(batch) == 1:
            refuse(batch[0], error)
            return
        half = len(batch) // 2
        yield from publish_parts(publish, batch[:half], refuse)
        yield from publish_parts(publish, batch[half:], refuse)


class MessageBatch(NamedTuple):
    """Counts of a published batch: messages accepted and new."""

    sent: int
    new: int


def publish_all(topic: Topic, messages: Iterable[Message], refuse: Refuse) -> Iterator[MessageBatch]:
    """Publish messages in batches, and yield the counts of each batch after the topic has stored it."""
    refused = 0

    def count(message: Message, error: MessageError) -> None:
        nonlocal refused
        refused += 1
        refuse(message, error)

    for batch in split(messages, lambda message: len(message.body), _BATCH_BYTES, _BATCH):
        refused = 0
        new = sum(publish_parts(topic.publish, batch, count))
        yield MessageBatch(len(batch) - refused, new)


class SchemaCheck:
    """Validates events against the facility's schema and, if the registry has it, the payload's.

    Args:
        registry: of payloads; by default the types that come with balog.
    """

    def __init__(self, registry: Registry | None = None) -> None:
        self._registry = registry or open_registry()
        facility = resources.files("balog.schemas").joinpath("facility")
        self._facility = {
            version: JsonValidator(facility.joinpath(f"{version}.json").read_bytes(), f"facility {version}")
            for version in ("0.0.1", FACILITY_VERSION)
        }
        self._facility["1.0.0"] = self._facility[FACILITY_VERSION]

    def __call__(self, event: Event) -> None:
        """Raise EventError for an invalid event, with the ``path`` of the violation and without any value."""
        if event.schema in self._facility:
            _refuse(self._facility[event.schema].check(encode(event)), "$")
        if event.cls_type is not None and event.version is not None:
            try:
                validator = self._registry.validator(event.cls_type, event.version)
            except (UnknownTypeError, UnknownVersionError):
                return
            _refuse(validator.check(bytes(event.raw_payload)), "$.payload")


def _refuse(faults: Sequence[SchemaViolation], prefix: str) -> None:
    if faults:
        more = f", and {len(faults) - 1} more" if len(faults) > 1 else ""
        raise EventError(f"breaks its schema: {faults[0].reason}{more}", prefix + faults[0].path.removeprefix("$"))
