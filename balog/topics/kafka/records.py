"""Convert messages to Kafka's records and back, with headers for details that a record has no field for; read logs."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka import Message as Record

from balog.topics.base import DeadLetter, Generation, GivenUp, read_names, write_names
from balog.topics.kafka.errors import explain, is_denied
from balog.topics.kafka.partition import FetchedMessage
from balog.topics.kafka.settings import Settings

Headers = list[tuple[str, str | bytes | None]]

ID = "balog-id"
ATTEMPTS = "balog-attempts"
DUE = "balog-due"
GENERATION = "balog-generation"
PUBLISHED = "balog-published"
TOPIC, GROUP, ORIGIN = "balog-topic", "balog-group", "balog-origin"
REASON, TRACEBACK, CONSUMERS, DIED = "balog-reason", "balog-traceback", "balog-consumers", "balog-died"
KEY = "balog-key"
_GENERATION = re.compile(r"(\d{1,18})\.(\d{1,18})", re.ASCII)

MAX_REASON = 4096
MAX_TRACEBACK = 32 * 1024
"""Bytes of a dead letter's headers."""


class OutgoingRecord(NamedTuple):
    """A record to store; ``value`` None is a tombstone. Errors name its ``id``."""

    value: bytes | None
    key: str | bytes | None
    headers: Headers
    id: str


class StoredDeadLetter(NamedTuple):
    """A dead letter in its topic."""

    key: bytes
    offset: int
    dead_letter: DeadLetter
    message_key: str | None
    published: float
    generation: Generation


def again_record(
    id: str,
    body: bytes,
    key: str | None,
    published: float,
    generation: Generation,
    attempts: int = 0,
    due: float = 0.0,
) -> OutgoingRecord:
    """Return the record of a message that goes to a group again, through the group's retry topic.

    Args:
        attempts: number of earlier deliveries.
        due: earliest time of the next delivery, in seconds since the epoch.
    """
    headers: Headers = [(ID, id), (PUBLISHED, repr(published)), (ATTEMPTS, str(attempts)), (DUE, repr(due))]
    headers.append((GENERATION, _generation(generation)))
    if key is not None:
        headers.append((KEY, key))
    return OutgoingRecord(body, key, headers, id)


def dead_letter_record(
    topic: str, group: str, held: FetchedMessage, why: GivenUp, died: float, *, brief: bool = False
) -> OutgoingRecord:
    """Return the record of a dead letter.

    Args:
        topic: the topic of the message; that of a retried one has another name.
        died: seconds since the epoch.
        brief: shorten or omit long details.
    """
    headers: Headers = [
        (ID, held.id),
        (TOPIC, topic),
        (GROUP, group),
        (ORIGIN, held.origin),
        (REASON, _cut(why.reason, 256 if brief else MAX_REASON)),
        (ATTEMPTS, str(held.deliveries)),
        (DIED, repr(died)),
        (PUBLISHED, repr(held.published)),
    ]
    generation = held.partition.generation_of(held)
    if generation != Generation():
        headers.append((GENERATION, _generation(generation)))
    if why.consumers:
        headers.append((CONSUMERS, write_names(why.consumers, 256 if brief else MAX_REASON)))
    if why.traceback and not brief:
        headers.append((TRACEBACK, _cut(why.traceback, MAX_TRACEBACK)))
    if held.key is not None:
        headers.append((KEY, held.key))
    return OutgoingRecord(held.body, held.origin, headers, held.id)


def read_headers(record: Record) -> dict[str, str]:
    """Return balog's headers; the last one if a name repeats."""
    headers: dict[str, str] = {}
    pairs: Any = record.headers() or ()
    for name, value in pairs:
        if name.startswith("balog-") and value is not None:
            headers[name] = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return headers


def read_id(record: Record, headers: dict[str, str]) -> str:
    """Return a record's id: its header's, else that of the event in it, else ``topic-partition-offset``."""
    header_id = headers.get(ID)
    return header_id if header_id else _event_id(record.value() or b"") or origin_of(record)


def origin_of(record: Record) -> str:
    """Return the position of a record, ``topic-partition-offset``."""
    return f"{record.topic()}-{record.partition()}-{record.offset()}"


def read_key(record: Record, headers: dict[str, str]) -> str | None:
    """Return the key of a message; None without a key or if it is not a text."""
    if KEY in headers:
        return headers[KEY]
    key = record.key()
    if key is None:
        return None
    try:
        return key.decode() if isinstance(key, bytes) else str(key)
    except UnicodeDecodeError:
        return None


def read_published(record: Record, headers: dict[str, str]) -> float:
    """Return the seconds since the epoch when a message was first published."""
    return float(_number(headers, PUBLISHED, float, max(record.timestamp()[1], 0) / 1000))


def attempts_of(headers: dict[str, str]) -> int:
    """Return how often a message was delivered before it went to the retry topic."""
    return int(max(0, _number(headers, ATTEMPTS, int, 0)))


def delay_of(record: Record, headers: dict[str, str], now: float) -> float:
    """Return the seconds until a message may be delivered.

    The delay is never longer than when the record was written, even if the clock was set back since.

    Args:
        now: the seconds since the epoch.
    """
    due = _number(headers, DUE, float, 0.0)
    written = record.timestamp()[1] / 1000
    return float(max(0.0, min(due - now, due - written) if written > 0 else due - now))


def generation_of(headers: dict[str, str]) -> Generation:
    """Return the generation of a message in the retry topic; the first one without a header."""
    match = _GENERATION.fullmatch(headers.get(GENERATION, ""))
    return Generation(int(match[1]), int(match[2])) if match else Generation()


def new_number(last: int = 0) -> int:
    """Return the number of a new replay or redrive: milliseconds since the epoch, but above the last one."""
    return max(int(time.time() * 1000), last + 1)


def _generation(generation: Generation) -> str:
    return f"{generation.replay}.{generation.redrive}"


def read_dead_letter(record: Record, topic: str, group: str) -> StoredDeadLetter | None:
    """Read a dead letter of a group; None for other records, topics and groups."""
    headers = read_headers(record)
    key = as_bytes(record.key())
    if not key or headers.get(TOPIC, topic) != topic or headers.get(GROUP, group) != group:
        return None
    offset = int(record.offset() or 0)
    dead_letter = DeadLetter(
        read_id(record, headers),
        body_of(record),
        group,
        headers.get(REASON, ""),
        _number(headers, ATTEMPTS, int, 0),
        _number(headers, DIED, float, max(record.timestamp()[1], 0) / 1000),
        read_names(headers.get(CONSUMERS, "")),
        headers.get(TRACEBACK, ""),
        str(offset),
    )
    return StoredDeadLetter(
        key, offset, dead_letter, headers.get(KEY), read_published(record, headers), generation_of(headers)
    )


def body_of(record: Record) -> bytes:
    """Return a record's body, empty without a value."""
    return as_bytes(record.value())


def as_bytes(text: str | bytes | None) -> bytes:
    """Return a value or key of a record as bytes, empty for None."""
    return text.encode() if isinstance(text, str) else text or b""


def _number(headers: dict[str, str], name: str, kind: Callable[[str], Any], otherwise: Any) -> Any:
    """Return the number in a header; a default if it is missing or invalid."""
    try:
        return kind(headers[name])
    except (KeyError, ValueError):
        return otherwise


class _Header(msgspec.Struct):
    id: str


class _Head(msgspec.Struct):
    header: _Header


_head = msgspec.json.Decoder(_Head)


def _event_id(body: bytes | str) -> str | None:
    try:
        return _head.decode(body).header.id[:200] or None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _cut(text: str, longest: int) -> str:
    """Cut a text to a number of bytes of UTF-8, without lone surrogates."""
    raw = text.encode("utf-8", "backslashreplace")
    return raw[:longest].decode("utf-8", "ignore")


_SILENCE = 30.0
_OF_A_GROUP = {KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError._STATE}
"""librdkafka looks up the coordinator of the group, which this consumer never joins; it may lack the ACL."""
_BATCH = 500


def read(settings: Settings, topic: str, stretches: Mapping[int, tuple[int, int]], where: str) -> Iterator[Record]:
    """Yield the records of a topic, in order within a partition, up to the first open transaction.

    Args:
        stretches: the first offset of each partition, and the one after the last.

    Raises:
        TopicError: no record arrived for 30 seconds, or the ACL is missing.
    """
    left = {number: end for number, (start, end) in stretches.items() if start < end}
    if not left:
        return
    denied: list[KafkaError] = []
    consumer = Consumer({**settings.consumer("balog"), "error_cb": denied.append})
    try:
        consumer.assign([TopicPartition(topic, number, stretches[number][0]) for number in left])
        heard = time.monotonic()
        while left:
            first = consumer.poll(0.1)
            if first is None:
                refused = next((error for error in denied if is_denied(error)), None)
                if refused is not None or time.monotonic() - heard > _SILENCE:
                    raise explain(KafkaError(KafkaError._TIMED_OUT), where, refused)
                continue
            heard = time.monotonic()
            for record in (first, *consumer.consume(_BATCH, 0)):
                number, offset = record.partition() or 0, record.offset() or 0
                error = record.error()
                if error is not None and error.code() in _OF_A_GROUP:
                    continue
                if error is not None and error.code() != KafkaError._PARTITION_EOF:
                    if not explain(error, where).retryable:
                        raise explain(error, where, topic=topic)
                    continue
                if number not in left:
                    continue
                if error is None and offset < left[number]:
                    yield record
                if error is not None or offset + 1 >= left[number]:  # an open transaction ends the log early
                    del left[number]
    finally:
        consumer.close()
