"""Events in the field names of the Elastic Common Schema, so that dashboards for other logs show them.

Names and rules are those of the field reference of ECS 8.11 (elastic.co/guide/en/ecs). Fields without a name in ECS are
under ``balog``, each payload type in an object of its own: two types may have fields of one name and different types.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import Raw

from balog import payload as payloads
from balog.errors import EventError
from balog.event import LEVELS, Event
from balog.sinks.summary import stack_trace, summarize

ECS_VERSION = "8.11.0"

_MAX_LABELS = 100
_MAX_LABEL = 1024  # characters; the built-in templates don't index longer keywords
_NAMED = {
    "application": ("service", "name"),
    "application_version": ("service", "version"),
    "fqdn": ("host", "name"),
    "trace_id": ("trace", "id"),
    "span_id": ("span", "id"),
}
_NO_FIELD = re.compile(r"[^A-Za-z0-9_-]+")


def ecs_document(event: Event, timestamp: str) -> dict[str, Any]:
    """Return the ECS document of an event.

    Context without a name in ECS and a log's own fields become labels, which are strings. A payload that does not
    match its ``cls_type`` is kept unchanged.

    Args:
        timestamp: the event's timestamp (RFC 3339).
    """
    header = event.header
    document: dict[str, Any] = {
        "@timestamp": timestamp,
        "ecs": {"version": ECS_VERSION},
        "message": summarize(event, 8192),
        "event": {"id": header.id, "dataset": header.channel, "module": "balog", "kind": "event"},
        "log": {"logger": header.channel},
        "balog": {"schema": event.schema, "composition": header.composition},
    }
    if event.level is not None:
        document["log"]["level"] = event.level.lower()
        document["event"]["severity"] = LEVELS[event.level]
    labels: dict[str, str] = {}
    for key, value in header.context.items():
        if key in _NAMED and isinstance(value, str) and value:
            group, name = _NAMED[key]
            document.setdefault(group, {})[name] = value
        elif key == "process" and (number := _as_process(value)) is not None:
            document["process"] = {"pid": number}
        else:
            _label(labels, key, value)
    _add_payload(document, labels, event)
    if labels:
        document["labels"] = labels
    return document


def _add_payload(document: dict[str, Any], labels: dict[str, str], event: Event) -> None:
    ours = document["balog"]
    if event.cls_type is not None:
        ours["cls_type"] = event.cls_type
    try:
        payload = payloads.read(event)
    except EventError:
        payload = None
    if isinstance(payload, payloads.LogPayload):
        _add_log(document, labels, payload)
    elif isinstance(payload, payloads.MetricPayload):
        document["event"]["kind"] = "metric"
        ours["metric"] = {"type": payload.type, "name": payload.metric, "value": float(payload.value)}
        for key, value in payload.tags.items():
            _label(labels, key, value)
    elif isinstance(payload, payloads.MetricsPayload):
        document["event"]["kind"] = "metric"
        ours["metrics"] = [{"name": item.name, "value": float(item.value)} for item in payload.values]
    elif isinstance(payload, payloads.RunPayload):
        outcome = "success" if payload.outcome == "succeeded" else "failure"
        document["event"].update(outcome=outcome, duration=min(int(payload.duration * 1e9), 2**63 - 1))
        document.setdefault("process", {}).update(command_line=payload.command, exit_code=payload.exit_code)
        # The STATE has a different shape in each tap; as an object it would break the index mapping.
        ours["run"] = (
            {**event.payload, "state": _text(event.payload["state"])}
            if "state" in event.payload
            else (event.raw_payload)
        )
    elif not isinstance(payload, payloads.NullPayload):
        # The bytes pass undecoded; Raw is copied because it refers to the batch.
        ours["payload"] = {_NO_FIELD.sub("_", event.cls_type or "") or "unnamed": Raw(bytes(event.raw_payload))}


def _add_log(document: dict[str, Any], labels: dict[str, str], log: payloads.LogPayload) -> None:
    if log.message.strip():
        document["message"] = log.message
    if log.logger:
        document["log"]["logger"] = log.logger
    error = {"type": log.exception.type, "message": log.exception.message} if log.exception else {}
    if trace := stack_trace(log):
        error["stack_trace"] = trace
    if error:
        document["error"] = error
    for key, value in (log.fields or {}).items():
        _label(labels, key, value)


def _label(labels: dict[str, str], key: str, value: Any) -> None:
    """Add a label. Labels are flat, their keys have no dots, and their number is limited."""
    name = _NO_FIELD.sub("_", key)
    if name and value is not None and len(labels) < _MAX_LABELS:
        labels[name] = (value if isinstance(value, str) else _text(value))[:_MAX_LABEL]


def _text(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (OverflowError, RecursionError):  # a number of more than 64 bits, or a value that is too deeply nested
        return "…" if isinstance(value, dict | list) else str(value)


def _as_process(value: Any) -> int | None:
    text = str(value)
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None
