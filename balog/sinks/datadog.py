"""Metrics and logs to Datadog: over HTTPS, or metrics to an agent by DogStatsD."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timezone
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta, Struct

from balog.common.errors import ConfigError
from balog.common.http import CaFile, HttpClient, Timeout, Url
from balog.common.secrets import Secret
from balog.event import Event
from balog.event.batches import split
from balog.sinks.base import Delivery, RequestErrors, SinkError, SinkGuarantee
from balog.sinks.http_sink import PartialDeliveries
from balog.sinks.measuring.datadog_agent import Agent, AgentClient
from balog.sinks.measuring.datadog_json import (
    CountedSeconds,
    DatadogItem,
    distribution_items,
    host_of,
    log_item,
    series_items,
    tag_list,
    time_error,
)
from balog.sinks.measuring.measures import Measure, MeasureOptions, MeasureReader, is_measure

_SITE = re.compile(r"(?!app\.|api\.|www\.)([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}")
_MAX_SERIES_BODY = 512_000
_MAX_LOGS, _MAX_LOGS_BODY = 1000, 5_000_000

_SERIES, _DISTRIBUTIONS = "/api/v2/series", "/api/v1/distribution_points"
_LOGS = "/api/v2/logs"

What = Literal["metrics", "logs"]
_Kinds = Annotated[list[What], Meta(min_length=1)]


class DatadogSinkConfig(MeasureOptions, tag_field="type", tag="datadog", forbid_unknown_fields=True, kw_only=True):
    """Send metrics and logs to Datadog."""

    examples: ClassVar = (
        {
            "type": "datadog",
            "api_key": {"env": "DD_API_KEY"},
            "site": "datadoghq.eu",
            "send": ["metrics", "logs"],
            "tags": {"env": "prod"},
        },
        {"type": "datadog", "agent": {"host": "localhost", "port": 8125}},
    )

    guarantees: ClassVar = (
        SinkGuarantee(
            "at least once",
            "Datadog has accepted it",
            f"logs: ≤ {_MAX_LOGS:,} and {_MAX_LOGS_BODY // 10**6} MB; "
            f"series or distributions: ≤ {_MAX_SERIES_BODY // 1000} kB",
            option="api_key",
        ),
        SinkGuarantee(
            "at most once",
            "it is sent to the agent",
            "metrics, many in a datagram",
            not_retried="",
            option="agent",
            extra="sinks",
        ),
    )

    api_key: Annotated[Secret, Meta(description="For HTTPS; logs need it.")] | None = None
    agent: Annotated[Agent, Meta(description="Metrics go to this agent in place of HTTPS.")] | None = None
    send: Annotated[
        _Kinds | None,
        Meta(
            description="By default metrics and, with an api_key, logs. Metric events go as metrics and not as logs, "
            "runs as both."
        ),
    ] = None
    site: Annotated[
        str, Meta(max_length=100, description="datadoghq.com, datadoghq.eu, us3.datadoghq.com, us5., ap1., ap2. …")
    ] = "datadoghq.com"
    url: Annotated[
        Url | None,
        Meta(
            description="A proxy for all requests, in place of the site's servers.",
            examples=["https://proxy.example.com"],
        ),
    ] = None
    service: Annotated[
        str, Meta(max_length=100, description="The service; the event's application if omitted.", examples=["shop"])
    ] = ""
    timeout: Timeout = 10.0
    ca_file: CaFile | None = None

    @property
    def name(self) -> str:
        """``datadog`` and the site, the URL or the agent."""
        is_by_agent_only = self.agent is not None and self.api_key is None
        return f"datadog {self.agent.place if is_by_agent_only and self.agent else self.url or self.site}"

    def takes(self, event: Event) -> bool:
        """Return whether the sink sends anything of an event; see ``SinkOptions``."""
        return "logs" in self._sent() or is_measure(event)

    def _sent(self) -> set[What]:
        return set(self.send or (["metrics", "logs"] if self.api_key else ["metrics"]))

    def build(self) -> DatadogSink:
        """Return the sink, unopened.

        Raises:
            ConfigError: there is neither an agent nor a key, the site is invalid, or logs have no key.
            MissingExtraError: a package is not installed.
        """
        if self.agent is None and self.api_key is None:
            raise ConfigError("is missing; give it, or an agent", path="api_key")
        send = self._sent()
        if self.api_key is None and "logs" in send:
            raise ConfigError("is missing; an agent takes no logs", path="api_key")
        if not _SITE.fullmatch(self.site):
            raise ConfigError("is not a site; expected datadoghq.com, datadoghq.eu, us5.datadoghq.com …", path="site")
        agent = None
        if self.agent is not None and "metrics" in send:
            agent = AgentClient(self.agent)
        api = logs = None
        if self.api_key is not None:
            key = self.api_key.reveal("api_key")
            api = self._client(self.url or f"https://api.{self.site}", key, is_gzipped=False)
            logs = self._client(self.url or f"https://http-intake.logs.{self.site}", key, is_gzipped=True)
        return DatadogSink(self, send, agent, api, logs)

    def _client(self, url: str, key: str, *, is_gzipped: bool) -> HttpClient:
        return HttpClient(
            url, headers={"DD-API-KEY": key}, timeout=self.timeout, ca_file=self.ca_file, is_gzipped=is_gzipped
        )


class DatadogSink:
    """See ``DatadogSinkConfig``. At least once over HTTPS; at most once through an agent, which does not answer."""

    def __init__(
        self,
        config: DatadogSinkConfig,
        send: set[What],
        agent: AgentClient | None,
        api: HttpClient | None,
        logs: HttpClient | None,
    ) -> None:
        self._config = config
        self._send = send
        self._agent = agent
        self._api = api
        self._logs = logs
        self._reader = MeasureReader(config, config.name)
        self._tags = tag_list({key: value for key, value in config.tags.items() if value})
        self._counted = CountedSeconds()
        self._partial = PartialDeliveries()

    def open(self) -> None:
        """Do nothing: connections are made when they are needed."""

    def probe(self) -> None:
        """Check that Datadog accepts the key, and that the host of an agent is known; see ``Sink``."""
        if self._agent is not None:
            self._agent.probe()
        if self._api is not None:
            self._api.probe("/api/v1/validate", "GET")

    def write(self, batch: Sequence[Delivery]) -> None:
        """Send the metrics and logs of a batch, each kind in as few requests as possible."""
        errors, when = RequestErrors(), datetime.now(timezone.utc)
        taken: dict[str, set[int]] = {}
        measured: set[int] = set()
        if "metrics" in self._send:
            measured = self._write_metrics(batch, when, errors, taken)
        logged = [
            index
            for index, (event, _) in enumerate(batch)
            if "logs" in self._send
            and (index not in measured or event.cls_type == "run")
            and self._partial.lacks(_LOGS, event)
        ]
        for index in set[int]().union(*taken.values()).difference(logged, errors.remaining):
            batch[index].accept()
        if self._logs is not None and logged:
            items = [log_item(n, batch[n].event, self._service(batch[n].event), self._tags, when) for n in logged]
            taken[_LOGS] = self._post(self._logs, _LOGS, items, _Form(b"[", b"]", _MAX_LOGS_BODY, _MAX_LOGS), errors)
        self._partial.settle(batch, taken, errors.remaining)
        errors.finish()

    def close(self) -> None:
        """Close the connections."""
        for client in (self._agent, self._api, self._logs):
            if client is not None:
                client.close()

    def _service(self, event: Event) -> str:
        application = event.header.context.get("application")
        return self._config.service or (application[:100] if isinstance(application, str) else "")

    def _write_metrics(
        self, batch: Sequence[Delivery], when: datetime, errors: RequestErrors, taken: dict[str, set[int]]
    ) -> set[int]:
        """Send the measurements of a batch. Return the indexes of the events that are metrics, sent or not."""
        measured = self._reader.read(batch)
        rejected = dict(measured.rejected)
        services = {index: self._service(batch[index].event) for index, _ in measured.measures}
        due = [
            (index, measure)
            for index, measure in measured.measures
            if self._partial.lacks(self._request_of(measure), batch[index].event)
        ]
        if self._agent is not None:
            taken[_SERIES] = {index for index, _ in due}
            try:
                self._agent.send([(index, measure, services[index]) for index, measure in due])
            except SinkError as error:
                errors.keep(error.remaining or (), error)
                taken[_SERIES] -= set(error.remaining or ())
        elif self._api is not None:
            rejected.update((index, why) for index, measure in due if (why := time_error(measure.timestamp, when)))
            kept = [(i, measure, host_of(batch[i].event)) for i, measure in due if i not in rejected]
            points = [item for item in kept if self._request_of(item[1]) == _SERIES]
            spread = [item for item in kept if self._request_of(item[1]) == _DISTRIBUTIONS]
            form = _Form(b'{"series":[', b"]}", _MAX_SERIES_BODY, 10_000)
            series = series_items(points, services, self._counted)
            taken[_SERIES] = self._post(self._api, _SERIES, series, form, errors)
            distributions = distribution_items(spread, services)
            taken[_DISTRIBUTIONS] = self._post(self._api, _DISTRIBUTIONS, distributions, form, errors)
        errors.reject(rejected)
        return {*services, *rejected}

    def _request_of(self, measure: Measure) -> str:
        is_spread = self._agent is None and measure.kind == "timer"
        return _DISTRIBUTIONS if is_spread else _SERIES

    def _post(
        self, client: HttpClient, path: str, items: Sequence[DatadogItem], form: _Form, errors: RequestErrors
    ) -> set[int]:
        """Post items, as many per request as allowed. A retryable error leaves the rest for later.

        Returns:
            The indexes of the events whose items were all taken.
        """
        taken = {index for item in items for index in item.indexes}
        failure: SinkError | None = None
        large = f"it does not fit into a request of {form.most_bytes} bytes"

        def refuse(indexes: Iterable[int], why: str) -> None:
            errors.reject(dict.fromkeys(indexes, why))
            taken.difference_update(indexes)

        for part in form.parts(items, lambda item: refuse(item.indexes, large)):
            indexes = [index for item in part for index in item.indexes]
            try:
                if failure is not None:
                    raise failure
                reported = _errors_in(client.post(path, form.join(part)).body)
            except SinkError as error:
                failure = error if error.retryable else None
                errors.keep(indexes, error)
                taken.difference_update(indexes)
                continue
            if reported:
                refuse(indexes, reported)
            for item in part:
                self._counted.keep(item.seconds)
        return taken


class _Form(Struct, frozen=True):
    """The form of a request body, and its limits."""

    begin: bytes
    end: bytes
    most_bytes: int
    most_items: int

    def join(self, items: Sequence[DatadogItem]) -> bytes:
        return self.begin + b",".join(item.body for item in items) + self.end

    def parts(self, items: Sequence[DatadogItem], refuse: Callable[[DatadogItem], None]) -> Iterator[list[DatadogItem]]:
        room = self.most_bytes - len(self.begin) - len(self.end)
        for item in items:
            if len(item.body) > room:
                refuse(item)
        fitting = (item for item in items if len(item.body) <= room)
        return split(fitting, lambda item: len(item.body), room, self.most_items)


class _Answer(Struct):
    errors: list[str] = []


_answer = msgspec.json.Decoder(_Answer)


def _errors_in(body: bytes) -> str:
    """Return the errors in an answer with a success status; empty if there are none."""
    if not body.strip():
        return ""
    try:
        return "; ".join(_answer.decode(body).errors)[:200]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise SinkError("took the request, but does not answer as Datadog does; see site and url") from None
