"""Events to OpenTelemetry: logs and metrics by OTLP over HTTP, for a Collector and many products.

Retryable answers: https://opentelemetry.io/docs/specs/otlp/#otlphttp
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Annotated, ClassVar, Literal
from urllib.parse import urlsplit
from uuid import uuid4

import msgspec
from msgspec import Meta, Struct, field

from balog.common.errors import ConfigError
from balog.common.http import CaFile, HttpClient, HttpStatusError, Timeout, Url
from balog.common.text import counted
from balog.event import Event
from balog.sinks.base import Delivery, RequestErrors, SinkError, SinkGuarantee
from balog.sinks.http_sink import Headers, HttpSink, PartialDeliveries, reveal_headers
from balog.sinks.measuring.measures import Measure, MeasureOptions, MeasureReader, is_measure
from balog_otlp.requests import is_representable, logs_request, metrics_request

_RETRYABLE = frozenset({429, 502, 503, 504})
# By the specification these are not retryable, either. They are caused by the config, so the events are kept.
_CONFIG_ERRORS = frozenset({401, 403, 404, 405, 407})
_FIELDS = {"logs": b"resourceLogs", "metrics": b"resourceMetrics"}

Signal = Literal["logs", "metrics"]
Name = Annotated[str, Meta(min_length=1, max_length=200)]


class OtlpSinkConfig(MeasureOptions, tag_field="type", tag="otlp", forbid_unknown_fields=True, kw_only=True):
    """Send log records and metrics to an OTLP receiver."""

    examples: ClassVar = (
        {
            "type": "otlp",
            "url": "http://localhost:4318",
            "headers": {"Authorization": {"env": "OTLP_AUTH"}},
            "resource": {"deployment.environment.name": "prod"},
        },
    )

    guarantees: ClassVar = (
        SinkGuarantee(
            "at least once",
            "the receiver has accepted it",
            "the logs of a batch, or its metrics",
            not_retried="each status except 3xx, 401, 403, 404, 405, 407, 429, 502, 503, 504",
        ),
    )

    url: Annotated[Url, Meta(description="The receiver, without /v1/logs and /v1/metrics.")] = "http://localhost:4318"
    send: Annotated[
        list[Signal],
        Meta(
            min_length=1,
            description="With metrics in it, metric events go as metrics and not as logs; runs as both.",
            examples=[["logs"]],
        ),
    ] = field(default_factory=lambda: ["logs", "metrics"])
    headers: Headers = field(default_factory=dict)
    resource: Annotated[
        dict[Name, str],
        Meta(max_length=50, description="Attributes of the resource, such as deployment.environment.name."),
    ] = field(default_factory=dict)
    compress: Annotated[bool, Meta(description="Send bodies gzipped.")] = True
    timeout: Timeout = 10.0
    ca_file: CaFile | None = None

    @property
    def name(self) -> str:
        """``otlp URL``."""
        return f"otlp {self.url}"

    def takes(self, event: Event) -> bool:
        """Return whether the sink sends anything of an event; see ``SinkOptions``."""
        return "logs" in self.send or is_measure(event)

    def build(self) -> OtlpSink:
        """Return the sink, unopened.

        Raises:
            ConfigError: the URL is for one signal, or a header has a credential as text.
        """
        if urlsplit(self.url).path.rstrip("/").endswith(("/v1/logs", "/v1/metrics", "/v1/traces")):
            raise ConfigError("is of one signal only; give what comes before /v1/", path="url")
        client = HttpClient(
            self.url,
            headers=reveal_headers(self.headers),
            timeout=self.timeout,
            ca_file=self.ca_file,
            is_gzipped=self.compress,
        )
        return OtlpSink(self, client)


class OtlpSink(HttpSink):
    """See ``OtlpSinkConfig``. At least once: after a broken connection, the request is sent again."""

    def __init__(self, config: OtlpSinkConfig, client: HttpClient) -> None:
        super().__init__(client)
        self._config = config
        self._reader = MeasureReader(config, config.name) if "metrics" in config.send else None
        self._partial = PartialDeliveries()
        self._writer = uuid4()

    def probe(self) -> None:
        """Check with empty requests that the receiver accepts the signals that are sent; see ``Sink``."""
        for signal, name in _FIELDS.items():
            if signal in self._config.send:
                try:
                    _partial_success(self._client.post(f"/v1/{signal}", b'{"%b":[]}' % name).body)
                except HttpStatusError as error:
                    if error.answer.status != 400:  # some receivers refuse empty requests
                        raise

    def write(self, batch: Sequence[Delivery]) -> None:
        """Send a batch in one request for its logs and one for its metrics."""
        config, errors = self._config, RequestErrors()
        taken: dict[str, Collection[int]] = {}
        measured: set[int] = set()
        unlogged: set[int] = set()
        if self._reader is not None:
            metrics = self._reader.read(batch)
            unfit = {index: why for index, measure in metrics.measures if (why := _value_error(measure))}
            errors.reject({**metrics.rejected, **unfit})
            measured = {index for index, _ in metrics.measures if index not in unfit}
            unlogged = {*measured, *unfit, *metrics.rejected}
            sent = {index for index in measured if self._partial.lacks("metrics", batch[index].event)}
            measures = [(batch[index].event, measure) for index, measure in metrics.measures if index in sent]
            taken["metrics"] = self._post(
                "metrics",
                sent,
                lambda: metrics_request(measures, config.resource, self._writer),
                errors,
            )
        logged = [
            index
            for index, (event, _) in enumerate(batch)
            if "logs" in config.send
            and (index not in unlogged or (event.cls_type == "run" and index in measured))
            and self._partial.lacks("logs", event)
        ]
        for index in set(taken.get("metrics", ())).difference(logged):
            batch[index].accept()
        events = [batch[index].event for index in logged]
        taken["logs"] = self._post("logs", logged, lambda: logs_request(events, config.resource), errors)
        self._partial.settle(batch, taken, errors.remaining)
        errors.finish()

    def _post(
        self, signal: Signal, indexes: Collection[int], encode: Callable[[], bytes], errors: RequestErrors
    ) -> Collection[int]:
        """Send a request unless it is empty. Return the indexes of the events that were taken."""
        if not indexes:
            return ()
        try:
            answer = self._client.post(f"/v1/{signal}", encode()).body
            partial = _partial_success(answer)
        except HttpStatusError as error:
            status = error.answer.status
            is_kept = status in _RETRYABLE or status in _CONFIG_ERRORS or 300 <= status < 400
            errors.keep(indexes, SinkError(str(error), retryable=is_kept, retry_after=error.retry_after))
        except SinkError as error:
            errors.keep(indexes, error)
        else:
            if not partial.refused:
                return indexes
            refused = counted(partial.refused, "log" if signal == "logs" else "data point")
            reason = f"the receiver refused {refused} of a batch of {counted(len(indexes), 'event')}"
            reason += f": {partial.message[:200]}" if partial.message else ""
            if partial.refused >= len(indexes) and signal == "logs":
                errors.reject(dict.fromkeys(indexes, reason))
                return ()
            # The answer does not name them, and none may be sent again, so the others count as delivered.
            errors.refuse_unnamed(min(partial.refused, len(indexes)), reason)
            return indexes
        return ()


def _value_error(measure: Measure) -> str | None:
    """Return why OTLP can't represent a measurement; None if it can."""
    if measure.kind == "counter" and measure.value < 0:
        return f"{measure.name[:100]}: a counter cannot go down, by {measure.value:g}"
    if not is_representable(measure.timestamp):
        return f"{measure.name[:100]}: OTLP has no time like {measure.timestamp.isoformat()}"
    return None


class _Partial(Struct):
    """The answer's ``partialSuccess``. In protobuf's JSON, 64-bit integers are strings or numbers."""

    rejectedLogRecords: int = 0
    rejectedDataPoints: int = 0
    message: str = field(name="errorMessage", default="")

    @property
    def refused(self) -> int:
        return self.rejectedLogRecords + self.rejectedDataPoints


class _Answer(Struct):
    partial: _Partial | None = field(name="partialSuccess", default=None)


_answer = msgspec.json.Decoder(_Answer, strict=False)


def _partial_success(body: bytes) -> _Partial:
    if not body.strip():
        return _Partial()
    try:
        return _answer.decode(body).partial or _Partial()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise SinkError("took the request, but does not answer as an OTLP receiver does; see url") from None
