"""The payload types that the project itself writes and reads. Everybody else's types come from a registry."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from balog.errors import EventError, split_refusal
from balog.event import Event

__all__ = [
    "ConfigRollbackPayload",
    "ConsumerFailurePayload",
    "ExceptionInfo",
    "FailedEventPayload",
    "FailedEventProblem",
    "Frame",
    "HeldBackChannel",
    "HeldBackPayload",
    "LogPayload",
    "MetricPayload",
    "MetricValue",
    "MetricsPayload",
    "NullPayload",
    "RunPayload",
    "StatePayload",
    "StreamCount",
    "log_payload",
    "read",
]


_LARGEST = 1.7976931348623157e308
Number = Annotated[float, Meta(ge=-_LARGEST, le=_LARGEST)]
"""A number that JSON can write: neither infinite nor "nan", also where it comes as a string."""


class Frame(Struct, omit_defaults=True, kw_only=True):
    """One frame of a traceback; ``locals`` are texts, and there only if somebody asked for them."""

    file: str = ""
    line: int | None = None
    function: str = ""
    locals: dict[str, str] | None = None


class ExceptionInfo(Struct, omit_defaults=True, kw_only=True):
    """An exception as data: ``type`` is the class's dotted name, ``frames`` begin with the outermost."""

    type: str
    message: str = ""
    frames: list[Frame] = []
    cause: ExceptionInfo | None = None


class LogPayload(Struct, tag_field="cls_type", tag="log", omit_defaults=True, kw_only=True):
    """A line for people, as it is read; ``log_payload`` writes one.

    ``fields`` holds what was logged beside the message, ``exc_text`` a whole traceback.
    """

    message: str
    version: str = "1.0.0"
    severity: str | None = None
    logger: str | None = None
    fields: dict[str, Any] | None = None
    exception: ExceptionInfo | None = None
    exc_text: str | None = None
    problem: str | None = None


class MetricValue(Struct, kw_only=True):
    """One named number; facility 0.0.1 wrote it as a string."""

    name: str
    value: Number


class MetricsPayload(Struct, tag_field="cls_type", tag="metrics", kw_only=True):
    """Several named numbers at once, as the first balog had them."""

    values: list[MetricValue]
    version: str = "1.0.0"


class MetricPayload(Struct, tag_field="cls_type", tag="metric", kw_only=True):
    """One Singer metric. A counter's value is a delta, a timer's is in seconds, a gauge's is the level now."""

    type: Literal["counter", "timer", "gauge"]
    metric: Annotated[str, Meta(min_length=1)]
    value: Number
    tags: dict[str, Any] = {}
    version: str = "1.0.0"


_Count = Annotated[int, Meta(ge=0)]
_Seconds = Annotated[float, Meta(ge=0, le=_LARGEST)]


class StreamCount(Struct, kw_only=True):
    """What one stream carried in a run; ``bytes`` are those of its RECORD lines, newlines included.

    A tap of balog's toolkit says more: how many records are ``new`` and how many were ``updated``, where it can tell;
    how many broke the schema and were set aside (``quarantined``); and the ``problem`` of a stream that failed.
    """

    stream: str
    records: _Count
    bytes: _Count | UnsetType = UNSET
    new: _Count | UnsetType = UNSET
    updated: _Count | UnsetType = UNSET
    quarantined: _Count | UnsetType = UNSET
    problem: str | UnsetType = UNSET


class RunPayload(Struct, tag_field="cls_type", tag="run", kw_only=True):
    """The report of one pipeline run, written once at its end.

    ``duration`` is in seconds of wall time. ``exit_code`` is the child's own; a child that a signal killed has
    128 + the signal's number, as a shell gives it, and the signal's name in ``signal``. What nobody measured is unset;
    where nobody looked at the stream ``records`` is 0, ``streams`` empty and ``bytes`` unset.

    Attributes:
        started: RFC 3339, as is ``ended``.
        bytes: all that the child wrote to its stdout.
        junk: lines among it that were no Singer messages, where somebody looked for them.
        cpu_user: seconds of the child and of the descendants that it waited for, as is ``cpu_system``.
        peak_memory: bytes resident at most, of whichever of those processes had most. On Linux never less than what
            ``balog run`` itself had when it began the child, some 30 MB.
        problem: why the run failed, where that was not the child's doing.
        state: the value of the last STATE message, without what looks like a secret: to look at, not to go on from.
    """

    outcome: Literal["succeeded", "failed"]
    duration: _Seconds
    exit_code: int
    command: str
    version: str = "1.0.0"
    records: _Count = 0
    streams: list[StreamCount] = []
    started: str | UnsetType = UNSET
    ended: str | UnsetType = UNSET
    signal: str | UnsetType = UNSET
    bytes: _Count | UnsetType = UNSET
    junk: _Count | UnsetType = UNSET
    cpu_user: _Seconds | UnsetType = UNSET
    cpu_system: _Seconds | UnsetType = UNSET
    peak_memory: _Count | UnsetType = UNSET
    problem: str | UnsetType = UNSET
    state: Any = UNSET


class HeldBackChannel(Struct, kw_only=True):
    """Events of one channel and level that did not pass."""

    channel: str
    level: str
    sampled: int
    limited: int


class HeldBackPayload(Struct, tag_field="cls_type", tag="held_back", kw_only=True):
    """What sampling and rate limits held back between two times."""

    since: str
    until: str
    sampled: int
    limited: int
    channels: list[HeldBackChannel]
    version: str = "1.0.0"


class ConfigRollbackPayload(Struct, tag_field="cls_type", tag="config_rollback", kw_only=True):
    """A service took a version of the document back by itself, because failures rose.

    Attributes:
        rolled_back: the version after which they rose.
        restored: the version whose document counts again; 0 is the empty document.
        number: the version that says so.
    """

    service: str
    rolled_back: _Count
    restored: _Count
    number: _Count
    reason: str
    version: str = "1.0.0"


class FailedEventProblem(Struct, kw_only=True):
    """What is wrong with a refused event: where, as a JSONPath, and what."""

    path: str
    reason: str


class FailedEventPayload(Struct, tag_field="cls_type", tag="failed_event", kw_only=True):
    """What an event service was sent and refused.

    Attributes:
        data: the original bytes, in base64.
        event: the event's id, like ``type`` and ``type_version`` where it could be read.
        sender: the name of the token that it was sent with.
    """

    data: str
    form: Literal["json", "protobuf"]
    problems: list[FailedEventProblem]
    version: str = "1.0.0"
    event: str | UnsetType = UNSET
    type: str | UnsetType = UNSET
    type_version: str | UnsetType = UNSET
    channel: str | UnsetType = UNSET
    sender: str | UnsetType = UNSET
    service: str | UnsetType = UNSET


class ConsumerFailurePayload(Struct, tag_field="cls_type", tag="consumer_failure", kw_only=True):
    """A consumer failed at an event, or a message was dead-lettered.

    Attributes:
        event: the event's id; the message's when it is no event.
        consumers: who failed, of a dead letter who gave it up.
        attempt: which one failed; of a dead letter, how often it was delivered.
        delay: seconds until the next attempt.
    """

    outcome: Literal["retry", "dead"]
    topic: str
    event: str
    consumers: list[str]
    attempt: _Count
    reason: str
    version: str = "1.0.0"
    channel: str | UnsetType = UNSET
    error_type: str | UnsetType = UNSET
    delay: _Seconds | UnsetType = UNSET


class StatePayload(Struct, tag_field="cls_type", tag="state", kw_only=True):
    """A Singer STATE message that went on; ``value`` is the tap's own."""

    value: Any
    version: str = "1.0.0"


class NullPayload(Struct, tag_field="cls_type", tag="null", omit_defaults=True):
    """Nothing: the event itself is the message."""

    version: str | None = None


def log_payload(message: str, severity: str, **parts: Any) -> dict[str, Any]:
    """Make a ``log`` payload; ``parts`` are fields of ``LogPayload``, of which empty ones are left out."""
    payload: dict[str, Any] = {"cls_type": "log", "version": "1.0.0", "message": message, "severity": severity}
    for key, part in parts.items():
        if part:
            payload[key] = part
    return payload


Payload = (
    ConsumerFailurePayload
    | ConfigRollbackPayload
    | FailedEventPayload
    | HeldBackPayload
    | LogPayload
    | MetricsPayload
    | MetricPayload
    | RunPayload
    | StatePayload
    | NullPayload
)

_decoders: dict[str, msgspec.json.Decoder[Payload]] = {
    "config_rollback": msgspec.json.Decoder(ConfigRollbackPayload, strict=False),
    "consumer_failure": msgspec.json.Decoder(ConsumerFailurePayload, strict=False),
    "failed_event": msgspec.json.Decoder(FailedEventPayload, strict=False),
    "log": msgspec.json.Decoder(LogPayload, strict=False),
    "metrics": msgspec.json.Decoder(MetricsPayload, strict=False),
    "metric": msgspec.json.Decoder(MetricPayload, strict=False),
    "run": msgspec.json.Decoder(RunPayload, strict=False),
    "held_back": msgspec.json.Decoder(HeldBackPayload, strict=False),
    "state": msgspec.json.Decoder(StatePayload, strict=False),
    "null": msgspec.json.Decoder(NullPayload, strict=False),
}


def read(event: Event) -> Payload | None:
    """Read an event's payload as the type that it names; None when the type is not one of this module's.

    Numeric strings are taken as numbers (facility 0.0.1 wrote them so). Keys that the type does not know are left
    out; ``event.payload`` has them.

    Raises:
        EventError: the payload is not what its ``cls_type`` says.
    """
    decoder = _decoders.get(event.cls_type or "")
    if decoder is None:
        return None
    try:
        return decoder.decode(event.raw_payload)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        reason, where = split_refusal(error)
        raise EventError(reason, "$.payload" + where.removeprefix("$")) from None
