"""An OTLP receiver over HTTP, made of opentelemetry-proto's own messages: what they don't parse strictly is refused."""

import base64
import re
from collections.abc import Iterator
from typing import Any

import msgspec
from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from tests.stand_ins.http_server import Answer, Request

__all__ = ["OtlpReceiver", "plain"]

_REQUESTS: dict[str, Any] = {"/v1/logs": ExportLogsServiceRequest, "/v1/metrics": ExportMetricsServiceRequest}


class OtlpReceiver:
    """Parses requests.

    Attributes:
        logs: requests to ``/v1/logs``.
        metrics: requests to ``/v1/metrics``.
    """

    def __init__(self) -> None:
        self.logs: list[ExportLogsServiceRequest] = []
        self.metrics: list[ExportMetricsServiceRequest] = []

    def __call__(self, request: Request) -> Answer:
        kind = _REQUESTS.get(request.path)
        if kind is None or request.method != "POST":
            return Answer(404)
        if request.headers["Content-Type"] != "application/json":
            return Answer(415)
        try:
            document = msgspec.json.decode(request.body)
            list(_ids_as_protobuf_has_them(document))
            message = json_format.ParseDict(document, kind(), ignore_unknown_fields=False)
            for problem in _problems(message):
                raise ValueError(problem)
        except (ValueError, json_format.ParseError) as error:
            return Answer(400, str(error).encode())
        (self.logs if request.path == "/v1/logs" else self.metrics).append(message)
        return Answer(200, b'{"partialSuccess":{}}')

    def records(self) -> Iterator[tuple[dict[str, Any], Any]]:
        """Give every log record with its resource's attributes."""
        for request in self.logs:
            for group in request.resource_logs:
                for scope in group.scope_logs:
                    for record in scope.log_records:
                        yield plain(group.resource.attributes), record

    def series(self) -> dict[str, Any]:
        """Give every metric by its name."""
        return {
            metric.name: metric
            for request in self.metrics
            for group in request.resource_metrics
            for scope in group.scope_metrics
            for metric in scope.metrics
        }


def plain(attributes: Any) -> dict[str, Any]:
    """Give attributes as plain data."""
    return {item.key: _value(item.value) for item in attributes}


def _value(value: Any) -> Any:
    match value.WhichOneof("value"):
        case None:
            return None
        case "array_value":
            return [_value(item) for item in value.array_value.values]
        case "kvlist_value":
            return plain(value.kvlist_value.values)
        case name:
            return getattr(value, name)


def _ids_as_protobuf_has_them(document: Any) -> Iterator[None]:
    """OTLP's JSON has ids in hex where protobuf's has base64: the one place in which the two differ."""
    for group in document.get("resourceLogs", []):
        for scope in group["scopeLogs"]:
            for record in scope["logRecords"]:
                for key, digits in (("traceId", 32), ("spanId", 16)):
                    if key in record:
                        if not re.fullmatch(f"[0-9a-f]{{{digits}}}", record[key]):
                            raise ValueError(f"{key} {record[key]!r}")
                        record[key] = base64.b64encode(bytes.fromhex(record[key])).decode()
                        yield


def _problems(message: Any) -> Iterator[str]:
    """Say what the specification asks for beyond what the messages can say."""
    groups = getattr(message, "resource_logs", None) or getattr(message, "resource_metrics", None)
    if not groups:
        yield "an empty request"
    for group in groups or ():
        yield from _attribute_problems(group.resource.attributes)
        if "service.name" not in plain(group.resource.attributes):
            yield "no service.name"
        for scope in getattr(group, "scope_logs", ()):
            for record in scope.log_records:
                yield from _attribute_problems(record.attributes)
                if not record.observed_time_unix_nano:
                    yield "no observed time"
        for scope in getattr(group, "scope_metrics", ()):
            for metric in scope.metrics:
                yield from _metric_problems(metric)


def _metric_problems(metric: Any) -> Iterator[str]:
    if not re.fullmatch(r"[A-Za-z0-9_./-]{1,255}", metric.name):
        yield f"name {metric.name!r}"
    data = getattr(metric, metric.WhichOneof("data"))
    seen = set()
    for point in data.data_points:
        yield from _attribute_problems(point.attributes)
        who = (str(plain(point.attributes)), point.time_unix_nano)
        if who in seen:
            yield "two points of one series and time"
        seen.add(who)
        if point.start_time_unix_nano and point.start_time_unix_nano >= point.time_unix_nano:
            yield "no time between start and end"
        if metric.HasField("sum") and metric.sum.is_monotonic and point.as_double < 0:
            yield "a monotonic sum went down"
        if metric.HasField("histogram"):
            if len(point.bucket_counts) != len(point.explicit_bounds) + 1:
                yield "buckets and bounds"
            if sum(point.bucket_counts) != point.count:
                yield "buckets and count"
    if hasattr(data, "aggregation_temporality") and data.aggregation_temporality != 1:
        yield "not a delta"


def _attribute_problems(attributes: Any) -> Iterator[str]:
    keys = [item.key for item in attributes]
    if "" in keys or len(set(keys)) < len(keys):
        yield f"keys {keys}"
