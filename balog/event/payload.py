"""The payload types that balog itself writes and reads. Other types come from a registry."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

from balog.common.errors import EventError, split_refusal
from balog.event.event import Event
from balog.event.log_payload import ExceptionInfo as ExceptionInfo
from balog.event.log_payload import Frame as Frame
from balog.event.log_payload import LogPayload as LogPayload
from balog.event.log_payload import log_payload as log_payload

_LARGEST = 1.7976931348623157e308
Number = Annotated[float, Meta(ge=-_LARGEST, le=_LARGEST)]
"""A finite number, also as a string."""


class MetricValue(Struct, kw_only=True):
    """One named number; facility 0.0.1 wrote it as a string."""

    name: str
    value: Number


class MetricsPayload(Struct, tag_field="cls_type", tag="metrics", kw_only=True):
    """Several named numbers, in the form of the first balog."""

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
    """The counts of one stream in a run; ``bytes`` are those of its RECORD lines, including newlines.

    A tap of balog's toolkit adds the numbers of ``new`` and ``updated`` records, if known, of records that violated the
    schema (``quarantined``), and the ``problem`` of a failed stream.
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

    ``duration`` is in seconds of wall time. ``exit_code`` is the command's own; if a signal killed it, 128 + the
    signal's number, as in a shell, with the signal's name in ``signal``. Values that were not measured are unset. If
    the stream was not examined, ``records`` is 0, ``streams`` empty and ``bytes`` unset.

    Attributes:
        started: RFC 3339, as is ``ended``.
        bytes: number of bytes that the command wrote to its stdout.
        invalid_lines: ``junk`` in the event: number of its lines that are not Singer messages, if they were checked.
        cpu_user: seconds of the command and of the descendants that it waited for, as is ``cpu_system``.
        peak_memory: the largest resident size of one of these processes, in bytes. On Linux at least the size of
            ``balog run`` at the command's start, about 30 MB.
        problem: why the run failed, if not by the command itself.
        state: the value of the last STATE message with secrets redacted, for information only.
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
    invalid_lines: _Count | UnsetType = field(default=UNSET, name="junk")
    cpu_user: _Seconds | UnsetType = UNSET
    cpu_system: _Seconds | UnsetType = UNSET
    peak_memory: _Count | UnsetType = UNSET
    problem: str | UnsetType = UNSET
    state: Any = UNSET


class RunStartedPayload(Struct, tag_field="cls_type", tag="run_started", kw_only=True):
    """A pipeline run has started; its report follows at its end, with the same ``run_id``."""

    command: str
    version: str = "1.0.0"


class FailedEventProblem(Struct, kw_only=True):
    """A problem of a rejected event, with its JSONPath."""

    path: str
    reason: str


class FailedEventPayload(Struct, tag_field="cls_type", tag="failed_event", kw_only=True):
    """An event that an event service rejected.

    Attributes:
        data: the original bytes, in base64.
        event: the event's id, if readable, like ``type`` and ``type_version``.
        sender: the name of the sender's token.
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
    """A consumer failed on an event, or a message became a dead letter.

    Attributes:
        event: the event's id; that of the message if it is not an event.
        consumers: the consumers that failed or, for a dead letter, that gave it up.
        attempt: the number of the failed attempt; for a dead letter, its number of deliveries.
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


class ExpectedBand(Struct, kw_only=True, frozen=True):
    """The values that a monitor expects; None is no limit."""

    low: float | None = None
    high: float | None = None


class AlertEvidence(Struct, kw_only=True, frozen=True):
    """The ids of the runs that an alert is about, the latest last, and a link for people."""

    runs: list[str] = []
    link: str | None = None


AlertState = Literal["ok", "pending", "firing", "resolved", "no_data", "learning", "silenced", "acknowledged"]


class AlertPayload(Struct, tag_field="cls_type", tag="alert", kw_only=True):
    """A change of the state of one series of a monitor.

    Attributes:
        kind: the monitor's kind, such as ``freshness``.
        previous: the state before; None for a new series.
        key: identifies the monitor and the series; all alerts of a series have the same one.
        incident: identifies the group that is notified together, such as all series of a pipeline; "" if none is open.
        incident_firing: number of the incident's series that fire after this change, silenced ones included; 0 if it
            is over.
        labels: ``pipeline``, ``stream`` and others, as texts.
        value: the number or text that was judged.
        reason: one sentence for people.
        since: RFC 3339: when this state began.
        started: RFC 3339: when the alert began; None if there is none.
        sequence: number of the change in its series, from 1, so that a repeat can be dropped.
    """

    monitor: str
    kind: str
    state: AlertState
    key: str
    severity: Literal["info", "warning", "error", "critical"]
    reason: str
    since: str
    sequence: _Count
    version: str = "1.0.0"
    previous: AlertState | None = None
    incident: str = ""
    incident_firing: _Count = 0
    labels: dict[str, str] = {}
    value: float | str | None = None
    expected: ExpectedBand | None = None
    started: str | None = None
    evidence: AlertEvidence = AlertEvidence()


class AlertSilencePayload(Struct, tag_field="cls_type", tag="alert_silence", kw_only=True):
    """Silence the alerts of matching series until a time.

    Attributes:
        match: a glob of monitors' names or of keys.
        until: RFC 3339; a time that is past ends the silence.
        by: who silenced them.
    """

    match: Annotated[str, Meta(min_length=1, max_length=500)]
    until: str
    version: str = "1.0.0"
    why: str = ""
    by: str = ""


class AlertAcknowledgementPayload(Struct, tag_field="cls_type", tag="alert_acknowledgement", kw_only=True):
    """Acknowledge the firing alerts of matching series until they resolve, or until a time.

    Attributes:
        match: as in ``AlertSilencePayload``.
        until: RFC 3339; None for no limit.
        by: who acknowledges them.
    """

    match: Annotated[str, Meta(min_length=1, max_length=500)]
    version: str = "1.0.0"
    until: str | None = None
    why: str = ""
    by: str = ""


class StatePayload(Struct, tag_field="cls_type", tag="state", kw_only=True):
    """A Singer STATE message that passed; ``value`` belongs to the tap."""

    value: Any
    version: str = "1.0.0"


class StreamSchemaPayload(Struct, tag_field="cls_type", tag="stream_schema", kw_only=True):
    """A Singer SCHEMA message that passed; ``schema`` is its JSON Schema."""

    stream: str
    schema: Raw
    version: str = "1.0.0"
    key_properties: list[str] = []


class NullPayload(Struct, tag_field="cls_type", tag="null", omit_defaults=True):
    """An empty payload: the event itself is the message."""

    version: str | None = None


Payload = (
    AlertAcknowledgementPayload
    | AlertPayload
    | AlertSilencePayload
    | ConsumerFailurePayload
    | FailedEventPayload
    | LogPayload
    | MetricsPayload
    | MetricPayload
    | RunPayload
    | RunStartedPayload
    | StatePayload
    | StreamSchemaPayload
    | NullPayload
)

_decoders: dict[str, msgspec.json.Decoder[Payload]] = {
    kind.__struct_config__.tag: msgspec.json.Decoder(kind, strict=False) for kind in get_args(Payload)
}


def read(event: Event) -> Payload | None:
    """Decode an event's payload as its declared type; None if the type is not one of this module's.

    Numeric strings become numbers (facility 0.0.1 wrote them so). Unknown keys are omitted; ``event.payload`` has them.

    Raises:
        EventError: the payload does not match its ``cls_type``.
    """
    decoder = _decoders.get(event.cls_type or "")
    if decoder is None:
        return None
    try:
        return decoder.decode(event.raw_payload)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        reason, where = split_refusal(error)
        raise EventError(reason, "$.payload" + where.removeprefix("$")) from None


class RunOutcome(Struct):
    """What a run's event says of itself, if nothing else in its payload can be read: any JSON, "" if it is missing."""

    outcome: Any = ""
    command: Any = ""

    @property
    def is_known(self) -> bool:
        """Whether the run has succeeded or failed."""
        return self.outcome in ("succeeded", "failed")


_decode_outcome = msgspec.json.Decoder(RunOutcome).decode


def run_outcome(event: Event) -> RunOutcome:
    """Return the outcome and the command of a run, also if other fields of its payload are wrong."""
    try:
        return _decode_outcome(event.raw_payload)
    except (msgspec.DecodeError, RecursionError):
        return RunOutcome()
