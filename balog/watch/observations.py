"""Observations: what monitors judge, made from events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct

from balog.common.errors import EventError
from balog.event import Event
from balog.event.fingerprints import ERROR_LEVELS, ERROR_PAYLOAD, failure
from balog.event.payload import (
    AlertAcknowledgementPayload,
    AlertSilencePayload,
    MetricPayload,
    MetricsPayload,
    RunOutcome,
    RunPayload,
    RunStartedPayload,
    StatePayload,
    StreamSchemaPayload,
    read,
    run_outcome,
)


class Observation(Struct, frozen=True, kw_only=True):
    """An observation of a pipeline at a time, in seconds since the epoch; ``run`` is the id of its run or ""."""

    time: float
    pipeline: str = ""
    run: str = ""


class RunObserved(Observation, frozen=True, kw_only=True):
    """A run that ended; its payload has the counts by stream. It is None if another field than the outcome is wrong."""

    outcome: str
    report: RunPayload | None


class RunStarted(Observation, frozen=True, kw_only=True):
    """A run that has started."""


class ErrorObserved(Observation, frozen=True, kw_only=True):
    """An error with its fingerprint and message."""

    fingerprint: str
    message: str


class MetricObserved(Observation, frozen=True, kw_only=True):
    """A value of a metric; ``type`` is ``counter``, ``timer`` or ``gauge``."""

    name: str
    type: str
    value: float
    tags: Mapping[str, str] = {}

    @property
    def stream(self) -> str:
        """The stream that its tags name; "" for none."""
        return self.tags.get("stream") or self.tags.get("endpoint") or ""


class SchemaObserved(Observation, frozen=True, kw_only=True):
    """A SCHEMA of a stream, as JSON, and the names of its keys."""

    stream: str
    schema: bytes
    keys: tuple[str, ...] = ()


class StateObserved(Observation, frozen=True, kw_only=True):
    """The value of a STATE message."""

    value: Any


class LagObserved(Observation, frozen=True, kw_only=True):
    """The number of messages of a topic that a group has not handled."""

    topic: str
    group: str
    lag: int


class SilenceObserved(Observation, frozen=True, kw_only=True):
    """A silence of series until a time, in seconds since the epoch."""

    match: str
    until: float


class AcknowledgementObserved(Observation, frozen=True, kw_only=True):
    """An acknowledgement of firing series; ``until`` may be infinite."""

    match: str
    until: float


_MAX_TEXT = 300
_EVENTS_OF_MONITORS = frozenset({"alert", "alert_silence", "alert_acknowledgement"})


EARLIEST, LATEST = 1.0, 4_102_444_800.0
"""Times of observations, 1970 to 2100: an event of a machine without a clock counts as one of the nearest."""


def observe(event: Event) -> Iterator[Observation]:
    """Yield the observations of an event that monitors judge; of a wrong payload, a run's outcome and an error only."""
    kind = event.cls_type
    try:
        payload: Any = read(event) if kind in _TYPES else None
    except EventError:
        payload = run_outcome(event) if kind in ("run", "run_started") else None
    is_error = kind == "consumer_failure" or (event.level in ERROR_LEVELS and kind not in _EVENTS_OF_MONITORS)
    if payload is None and not is_error:
        return
    context = event.header.context
    command = payload.command if isinstance(payload, RunPayload | RunStartedPayload | RunOutcome) else ""
    common: dict[str, Any] = {
        "time": min(max(event.header.timestamp.timestamp(), EARLIEST), LATEST),
        "pipeline": _text(context.get("pipeline")) or _text(command) or _text(context.get("application")),
        "run": _text(context.get("run_id")),
    }
    yield from _of_payload(payload, common)
    if is_error:
        error = failure(_error_parts(event))
        yield ErrorObserved(fingerprint=error.fingerprint, message=error.original, **common)


def _of_payload(payload: Any, common: dict[str, Any]) -> Iterator[Observation]:
    if isinstance(payload, RunPayload):
        yield RunObserved(outcome=payload.outcome, report=payload, **common)
        if payload.state is not UNSET and payload.state is not None:
            yield StateObserved(value=payload.state, **common)
    elif isinstance(payload, RunOutcome) and payload.is_known:
        yield RunObserved(outcome=payload.outcome, report=None, **common)
    elif isinstance(payload, RunStartedPayload):
        yield RunStarted(**common)
    elif isinstance(payload, MetricPayload):
        tags = {key: str(tag) for key, tag in payload.tags.items() if isinstance(tag, str | int | float)}
        yield MetricObserved(name=payload.metric, type=payload.type, value=payload.value, tags=tags, **common)
    elif isinstance(payload, MetricsPayload):
        for metric in payload.values:
            yield MetricObserved(name=metric.name, type="gauge", value=metric.value, **common)
    elif isinstance(payload, StreamSchemaPayload):
        keys = tuple(payload.key_properties)
        yield SchemaObserved(stream=payload.stream, schema=bytes(payload.schema), keys=keys, **common)
    elif isinstance(payload, StatePayload):
        yield StateObserved(value=payload.value, **common)
    elif isinstance(payload, AlertSilencePayload):
        if (until := seconds_of(payload.until)) is not None:
            yield SilenceObserved(match=payload.match, until=until, **common)
    elif isinstance(payload, AlertAcknowledgementPayload):
        until = seconds_of(payload.until) if payload.until is not None else float("inf")
        if until is not None:
            yield AcknowledgementObserved(match=payload.match, until=until, **common)


_TYPES = frozenset(
    {"run", "run_started", "metric", "metrics", "state", "stream_schema", "alert_silence", "alert_acknowledgement"}
)


def _error_parts(event: Event) -> dict[str, str | None]:
    """Return the payload's fields for the fingerprint as texts, in the lengths that the rollups use."""
    try:
        members = msgspec.json.decode(event.raw_payload, type=dict[str, Raw])
    except (msgspec.DecodeError, RecursionError):
        return {"cls_type": event.cls_type}
    parts: dict[str, str | None] = {"cls_type": event.cls_type}
    for name, length in ERROR_PAYLOAD.items():
        if name not in members:
            continue
        raw = bytes(members[name])
        if raw == b"null":
            continue
        text = msgspec.json.decode(raw, type=str) if raw.startswith(b'"') else raw.decode("utf-8", "replace")
        parts[name] = text if length is None else text[:length] if length > 0 else text[length:]
    return parts


def seconds_of(text: str) -> float | None:
    """Return a time in seconds since the epoch; None for another text, or one without a zone."""
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return moment.timestamp() if moment.tzinfo is not None else None


def _text(value: Any) -> str:
    return value[:_MAX_TEXT] if isinstance(value, str) else ""
