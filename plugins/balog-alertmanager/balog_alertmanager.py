"""Alerts to Prometheus Alertmanager, by its API v2 (``api/v2/openapi.yaml`` of prometheus/alertmanager).

Alertmanager keeps alerts in memory only. An alert that is not sent again before its ``endsAt`` is resolved there.
Labels identify an alert, and only labels can route it. So the severity is a label, and another one ends the alert that
has the old one.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from typing import Annotated, Any, ClassVar
from urllib.parse import quote, urlsplit

import msgspec
from msgspec import Meta

from balog.common.http import CaFile, HttpClient, HttpStatusError, Timeout, Url
from balog.common.text import cut
from balog.event import Event
from balog.event.payload import AlertPayload
from balog.sinks.alerts.alert_sink import AlertSinkOptions, LatestChanges, is_end, moment
from balog.sinks.alerts.alert_text import MAX_TEXT, MAX_TITLE, AlertTemplate, read_alert, short_line
from balog.sinks.base import Batching, Delivery, SinkError, SinkGuarantee
from balog.sinks.http_sink import Headers, HttpSink, reveal_headers

_PATH = "/api/v2/alerts"
_MAX_VALUE = 500
_MAX_FIRING = 10_000
_PER_REQUEST = 500
_RESEND = 60.0  # seconds between two requests about an alert that fires
_HOLD = timedelta(days=1)  # after the last request, Alertmanager resolves an alert
_ALERTING = ("firing", "silenced", "acknowledged")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_]")


class _Active(msgspec.Struct):
    labels: dict[str, str]


_decode = msgspec.json.Decoder(list[_Active]).decode


class AlertmanagerSinkConfig(
    AlertSinkOptions, tag_field="type", tag="alertmanager", forbid_unknown_fields=True, kw_only=True
):
    """Fire and resolve alerts in Prometheus Alertmanager."""

    examples: ClassVar = ({"type": "alertmanager", "url": "http://localhost:9093", "labels": {"team": "data"}},)

    guarantees: ClassVar = (
        SinkGuarantee(
            "at least once",
            "Alertmanager has accepted it",
            "the alerts of a batch",
            repeats="changes nothing: labels identify an alert",
        ),
    )

    url: Annotated[Url, Meta(description="Base URL, such as http://localhost:9093.")]
    headers: Headers = msgspec.field(default_factory=dict)
    labels: Annotated[dict[str, str], Meta(max_length=50, description="Further labels of each alert.")] = msgspec.field(
        default_factory=dict
    )
    timeout: Timeout = 10.0
    ca_file: CaFile | None = None
    batch: Batching = Batching(age=1.0)

    @property
    def name(self) -> str:
        """``alertmanager URL``."""
        return f"alertmanager {self.url}"

    def sends_ends_of_silenced(self, alert: AlertPayload) -> bool:
        """Return True: Alertmanager would otherwise go on notifying."""
        return True

    def build(self) -> AlertmanagerSink:
        """Return the sink, unopened.

        Raises:
            ConfigError: a URL, header or template is invalid, or a secret is missing.
        """
        templates = self.templates()
        client = HttpClient(self.url, headers=reveal_headers(self.headers), timeout=self.timeout, ca_file=self.ca_file)
        return AlertmanagerSink(client, self, templates)

    def preview(self, event: Event) -> str | None:
        """Return the alert as Alertmanager gets it; see ``SinkOptions``."""
        alert = read_alert(event)
        if alert is None:
            return None
        document = api_alert(alert, self.templates(), self.labels)
        return msgspec.json.format(msgspec.json.encode([document])).decode()


class AlertmanagerSink(HttpSink):
    """See ``AlertmanagerSinkConfig``. A thread sends the alerts that fire again every minute."""

    def __init__(
        self, client: HttpClient, options: AlertmanagerSinkConfig, templates: tuple[AlertTemplate, AlertTemplate]
    ) -> None:
        super().__init__(client)
        self._options = options
        self._templates = templates
        self._latest = LatestChanges()
        self._firing: dict[str, dict[str, Any]] = {}  # key of the series -> the alert, guarded by the lock
        self._requests = threading.Lock()
        self._is_closed = threading.Event()
        self._resender = threading.Thread(target=self._resend_regularly, name="balog alertmanager", daemon=True)

    def write(self, batch: Sequence[Delivery]) -> None:
        """Post the alerts of a batch; the last change of a series counts."""
        alerts = [read_alert(event) for event, _ in batch if self._options.takes(event)]
        changes = self._latest.select(alert for alert in alerts if alert is not None)
        if not changes:
            return
        with self._requests:
            firing, documents = dict(self._firing), []
            for alert in changes:
                documents += self._documents(alert, firing.pop(alert.key, None))
                if not is_end(alert) and len(firing) < _MAX_FIRING:
                    firing[alert.key] = documents[-1]
            self._post(documents)
            self._firing = firing
            for alert in changes:
                self._latest.record(alert)
        if self._firing and not self._resender.is_alive() and not self._is_closed.is_set():
            self._resender.start()

    def close(self) -> None:
        """Stop sending, and close the connections. Alerts that fire stay in Alertmanager for a day."""
        self._is_closed.set()
        if self._resender.is_alive():
            self._resender.join()
        super().close()

    def _documents(self, alert: AlertPayload, last: dict[str, Any] | None) -> list[dict[str, Any]]:
        """Return what to send about a change: its alert last, after the ends of those that have other labels.

        Args:
            last: what this process has sent before, if the alert fires.
        """
        arguments = self._templates, self._options.labels
        document = api_alert(alert, *arguments)
        before = [last["labels"]] if last is not None else self._active(alert, document["labels"]["key"])
        if is_end(alert):
            return [{**document, "labels": labels} for labels in before] or [document]
        reason = f"It goes on under other labels, with the severity {alert.severity}."
        now = _text(datetime.now(timezone.utc))
        end = api_alert(msgspec.structs.replace(alert, state="resolved", since=now, reason=reason), *arguments)
        return [*({**end, "labels": labels} for labels in before if labels != document["labels"]), document]

    def _active(self, alert: AlertPayload, key: str) -> list[dict[str, str]]:
        """Return the labels under which Alertmanager has a series that another process has sent.

        Raises:
            SinkError: there is no answer.
        """
        if alert.previous not in _ALERTING:
            return []
        matcher = quote("key=" + msgspec.json.encode(key).decode())
        try:
            return [series.labels for series in _decode(self._client.get(f"{_PATH}?filter={matcher}").body)]
        except HttpStatusError as error:
            if error.answer.status >= 500:
                raise
        except msgspec.MsgspecError:
            pass
        return []  # a gateway that only lets alerts in

    def _post(self, documents: Sequence[Mapping[str, Any]]) -> None:
        for start in range(0, len(documents), _PER_REQUEST):
            answer = self._client.post(_PATH, msgspec.json.encode(documents[start : start + _PER_REQUEST]))
            if answer.body:  # Alertmanager and gateways answer without one, a sign-in page has one
                raise SinkError(f"{self._options.url} does not answer as Alertmanager does; is the URL right?")

    def _resend_regularly(self) -> None:
        while not self._is_closed.wait(_RESEND):
            with self._requests:
                ends = _text(datetime.now(timezone.utc) + _HOLD)
                with suppress(SinkError):  # the next round tries again; `write` reports what fails
                    self._post([{**document, "endsAt": ends} for document in self._firing.values()])


def api_alert(
    alert: AlertPayload, templates: tuple[AlertTemplate, AlertTemplate], labels: Mapping[str, str]
) -> dict[str, Any]:
    """Return an alert as a ``postableAlert`` of the API.

    Args:
        labels: further labels; those of the alert win.
    """
    title, text = templates
    named = {_NOT_IN_NAMES.sub("_", name): value for name, value in {**labels, **alert.labels}.items()}
    named = {f"_{name}" if name[:1].isdigit() else name: value for name, value in named.items()}
    named |= {"alertname": alert.monitor, "severity": alert.severity, "key": alert.key}
    notes = {
        "summary": title.render(alert, MAX_TITLE),
        "description": text.render(alert, MAX_TEXT),
        "incident": alert.incident,
        "runs": ", ".join(alert.evidence.runs),
    }
    starts = moment(alert.started or alert.since)
    ends = moment(alert.since) if is_end(alert) else datetime.now(timezone.utc) + _HOLD
    document: dict[str, Any] = {
        "labels": _texts(named),
        "annotations": _texts(notes),
        "startsAt": _text(min(starts, ends)),
        "endsAt": _text(ends),
    }
    link = alert.evidence.link or ""
    if _is_url(link):
        document["generatorURL"] = link
    return document


def _texts(values: Mapping[str, str]) -> dict[str, str]:
    texts = {
        name: cut(short_line(value), MAX_TEXT if name == "description" else _MAX_VALUE)
        for name, value in values.items()
    }
    return {name: value for name, value in texts.items() if name and value}


def _text(when: datetime) -> str:
    return when.isoformat(timespec="microseconds")


def _is_url(link: str) -> bool:
    try:
        parts = urlsplit(link)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and all("!" <= char <= "~" for char in link)
    except ValueError:
        return False
