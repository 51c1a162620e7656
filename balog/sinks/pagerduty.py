"""Errors, failed runs and alerts as PagerDuty incidents, by the Events API v2; a run that succeeds resolves them.

An alert of a monitor triggers, acknowledges and resolves by its own key.

Requests and retryable answers: https://developer.pagerduty.com/docs/events-api-v2/trigger-events/
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from balog.common.errors import EventError
from balog.common.http import CaFile, HttpClient, HttpStatusError, Timeout, Url
from balog.common.secrets import Secret
from balog.common.text import cut
from balog.event import LEVELS, Event, Level
from balog.event.payload import AlertPayload, RunOutcome, run_outcome
from balog.sinks.alerts.alert_sink import LatestChanges
from balog.sinks.alerts.alert_text import read_alert
from balog.sinks.alerts.pagerduty_alerts import alert_action, alert_request
from balog.sinks.base import Batching, Delivery, RequestErrors, SinkError, SinkGuarantee, SinkOptions
from balog.sinks.http_sink import HttpSink
from balog.sinks.summary import summarize

_PATH = "/v2/enqueue"
_ACCEPTED = 202
_MAX_BODY = 512_000
_MAX_KEY = 255
_MAX_SUMMARY = 1024
_MAX_NAME = 255
_MAX_SHORTENED = 100_000  # characters, of at most 4 bytes
_MAX_FAILING_KEYS = 1000
_SEVERITIES = {"DEBUG": "info", "INFO": "info", "WARNING": "warning", "ERROR": "error", "CRITICAL": "critical"}


_Name = Annotated[str, Meta(min_length=1, max_length=150)]


class PagerDutySinkConfig(SinkOptions, tag_field="type", tag="pagerduty", forbid_unknown_fields=True, kw_only=True):
    """Trigger an incident for errors and failed runs, and resolve it when a run succeeds; the same for alerts."""

    examples: ClassVar = (
        {"type": "pagerduty", "routing_key": {"env": "PAGERDUTY_KEY"}, "pipeline": "stripe-to-csv", "level": "ERROR"},
    )

    guarantees: ClassVar = (
        SinkGuarantee(
            "at least once",
            "PagerDuty has accepted it",
            "one change of an incident",
            repeats="changes nothing: `dedup_key` identifies an incident",
        ),
    )

    routing_key: Annotated[Secret, Meta(description="The integration key of an Events API v2 integration.")]
    url: Annotated[Url, Meta(description="https://events.eu.pagerduty.com for accounts of the EU region.")] = (
        "https://events.pagerduty.com"
    )
    level: Annotated[
        Level | None, Meta(description="Events from this level on trigger; null: only runs that failed do.")
    ] = "ERROR"
    pipeline: Annotated[
        _Name | None,
        Meta(
            description="The pipeline's name: all that comes is one incident. Without it, LOG messages that don't "
            "say their application are an incident that no run resolves."
        ),
    ] = None
    timeout: Timeout = 10.0
    ca_file: CaFile | None = None
    batch: Batching = Batching(age=1.0)

    @property
    def name(self) -> str:
        """``pagerduty URL``."""
        return f"pagerduty {self.url}"

    def takes(self, event: Event) -> bool:
        """Return whether the sink sends anything of an event; see ``SinkOptions``."""
        if event.cls_type == "run":
            return True
        if (alert := read_alert(event)) is not None:
            return alert_action(alert) is not None
        return self.level is not None and event.level is not None and LEVELS[event.level] >= LEVELS[self.level]

    def preview(self, event: Event) -> str | None:
        """Return the request for an alert without its key; see ``SinkOptions``."""
        alert = read_alert(event)
        action = alert_action(alert) if alert is not None else None
        if alert is None or action is None:
            return None
        request = {"routing_key": "…", **alert_request(alert, event, action)}
        return msgspec.json.format(msgspec.json.encode(request)).decode()

    def build(self) -> PagerDutySink:
        """Return the sink, unopened.

        Raises:
            ConfigError: the key is invalid.
        """
        key = self.routing_key.reveal("routing_key")
        client = HttpClient(self.url, timeout=self.timeout, ca_file=self.ca_file, secrets=[key])
        threshold = LEVELS[self.level] if self.level else None
        return PagerDutySink(client, key, threshold, self.pipeline)


@dataclass
class _Call:
    """One request, and the indexes in the batch of the events that it covers; without an action, nothing is sent."""

    action: str | None
    key: str
    event: Event
    severity: str
    indexes: list[int]
    alert: AlertPayload | None = None

    def add(self, index: int, severity: str) -> None:
        """Cover another event; the highest severity counts."""
        self.indexes.append(index)
        self.severity = min(self.severity, severity, key=_BY_SEVERITY.index)


class PagerDutySink(HttpSink):
    """See ``PagerDutySinkConfig``. At least once; a repeated trigger or resolve changes nothing.

    The deduplication key is the same in each run. The broker of a later run, which knows nothing of this one, can
    therefore resolve its incidents. PagerDuty accepts the resolve of an incident that is not open, and ignores it.
    """

    def __init__(
        self,
        client: HttpClient,
        routing_key: str,
        threshold: int | None,
        pipeline: str | None,
    ) -> None:
        super().__init__(client)
        self._routing_key = routing_key
        self._threshold = threshold
        self._pipeline = pipeline
        self._latest = LatestChanges()
        self._failed: dict[str, set[str]] = {}  # deduplication key -> the commands whose last run failed

    def write(self, batch: Sequence[Delivery]) -> None:
        """Trigger and resolve incidents in the order of the events, with one request for consecutive triggers."""
        calls = self._plan(batch)
        # What needs no call must not come again alone: it is right only behind the events before it.
        for index in set(range(len(batch))).difference(*(call.indexes for call in calls)):
            batch[index].accept()
        errors = RequestErrors()
        for number, call in enumerate(calls):
            try:
                if call.action is not None:
                    self._post(call, call.action)
            except SinkError as error:
                if error.retryable:
                    errors.keep((index for later in calls[number:] for index in later.indexes), error)
                    break
                errors.reject(dict.fromkeys(call.indexes, str(error)))
                for index in call.indexes:
                    batch[index].refuse(str(error))
            else:
                for index in call.indexes:
                    batch[index].accept()
                if call.alert is not None:
                    self._latest.record(call.alert)
        errors.finish()

    def _plan(self, batch: Sequence[Delivery]) -> list[_Call]:
        calls: list[_Call] = []
        last: dict[str, _Call] = {}
        alerts = [read_alert(event) for event, _ in batch]
        new = {id(alert) for alert in self._latest.select(alert for alert in alerts if alert is not None)}
        for index, (event, _) in enumerate(batch):
            alert = alerts[index]
            if alert is not None:
                action = alert_action(alert)
                if id(alert) in new:
                    calls.append(_Call(action, alert.key, event, alert.severity, [index], alert))
                continue
            action = self._action(event)
            if action is None:
                continue
            key = self._key(event)
            if not self._changes_incident(action, key, event):
                continue
            severity = _severity(event)
            call = last.get(key)
            if call is not None and call.action == action:
                call.add(index, severity)
                continue
            last[key] = call = _Call(action, key, event, severity, [index])
            calls.append(call)
        return calls

    def _action(self, event: Event) -> str | None:
        run = _run(event)
        if run is not None:
            return "resolve" if run.outcome == "succeeded" else "trigger"
        if self._threshold is None or event.level is None or LEVELS[event.level] < self._threshold:
            return None
        return "trigger"

    def _changes_incident(self, action: str, key: str, event: Event) -> bool:
        """Return whether an action changes an incident; a success does not resolve another command's failure."""
        run = _run(event)
        if run is None:
            return True
        failed = self._failed.setdefault(key, set())
        if action == "trigger":
            failed.add(str(run.command))
        else:
            failed.discard(str(run.command))
        if not failed or len(self._failed) > _MAX_FAILING_KEYS:
            del self._failed[key]
        return action == "trigger" or not failed

    def _key(self, event: Event) -> str:
        name = self._pipeline or _text(event.header.context.get("application")) or _root(event)
        key = "balog/" + name.replace("%", "%25").replace("/", "%2F")
        return key if len(key) <= _MAX_KEY else "balog/" + hashlib.sha256(key.encode()).hexdigest()

    def _post(self, call: _Call, action: str) -> None:
        try:
            status = self._client.post(_PATH, self._body(call, action)).status
        except HttpStatusError as error:
            if not error.retryable and b"routing_key" in error.answer.body.lower().replace(b" ", b"_"):
                raise SinkError(f"{error}; put the routing_key right") from None
            raise
        if status != _ACCEPTED:
            raise SinkError(f"answered {status} and not {_ACCEPTED}: this is not PagerDuty's Events API v2; see url")

    def _body(self, call: _Call, action: str) -> bytes:
        if call.alert is not None:
            request = alert_request(call.alert, call.event, action)
            return msgspec.json.encode({"routing_key": self._routing_key, **request})
        request = {
            "routing_key": self._routing_key,
            "event_action": action,
            "dedup_key": call.key,
        }
        if action == "resolve":
            return msgspec.json.encode(request)
        event, context = call.event, call.event.header.context
        application = _text(context.get("application"))
        request["client"] = "balog"
        payload: dict[str, Any] = {
            "summary": _headline(event, application),
            "source": cut(_text(context.get("fqdn")) or application or "balog", _MAX_NAME),
            "severity": call.severity,
            "timestamp": event.header.timestamp.isoformat(timespec="microseconds"),
            "component": cut(application or _root(event), _MAX_NAME),
            "group": cut(self._pipeline or _root(event), _MAX_NAME),
            "class": cut(event.cls_type or "event", _MAX_NAME),
        }
        request["payload"] = payload
        details = {
            "event": event.header.id,
            "channel": event.header.channel,
            "level": event.level,
            "further_events": len(call.indexes) - 1,
        }
        try:
            payload["custom_details"] = {**details, "context": context, "payload": event.payload}
            body = msgspec.json.encode(request)
            if len(body) <= _MAX_BODY:
                return body
        except (EventError, RecursionError):
            pass  # too deeply nested to decode; its text is sent instead
        raw = bytes(event.raw_payload).decode("utf-8", "replace")
        payload["custom_details"] = {**details, "payload_shortened": cut(raw, _MAX_SHORTENED)}
        return msgspec.json.encode(request)


_BY_SEVERITY = ("critical", "error", "warning", "info")


def _severity(event: Event) -> str:
    severity = _SEVERITIES[event.level or "ERROR"]
    return min(severity, "error", key=_BY_SEVERITY.index) if _run(event) else severity


def _headline(event: Event, application: str) -> str:
    text = summarize(event, _MAX_SUMMARY)
    if not application or application in text:
        return text
    return cut(f"{cut(application, 200)}: {text}", _MAX_SUMMARY)


def _run(event: Event) -> RunOutcome | None:
    run = run_outcome(event) if event.cls_type == "run" else None
    return run if run is not None and run.is_known else None


def _root(event: Event) -> str:
    return event.header.channel.partition(".")[0]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)
