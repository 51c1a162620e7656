"""Datadog's HTTP intake, made of the models of Datadog's own client and of the documented limits.

It keeps points as Datadog does: of one series and second the last.
"""

import json
import re
from typing import Any

from datadog_api_client.configuration import Configuration
from datadog_api_client.exceptions import ApiTypeError, ApiValueError
from datadog_api_client.model_utils import ModelNormal, validate_and_convert_types
from datadog_api_client.v1.model.distribution_points_payload import DistributionPointsPayload
from datadog_api_client.v2.model.http_log import HTTPLog
from datadog_api_client.v2.model.metric_payload import MetricPayload

from tests.stand_ins.http_server import Answer, Request

__all__ = ["Datadog"]

_PLACES: dict[str, tuple[Any, int]] = {
    "/api/v2/series": (MetricPayload, 512_000),
    "/api/v1/distribution_points": (DistributionPointsPayload, 512_000),
    "/api/v2/logs": (HTTPLog, 5_000_000),
}
_configuration = Configuration()


class Datadog:
    """The answers of one account.

    Attributes:
        points: value by metric, tags, host and second, of counts and gauges.
        types: type by metric.
        spread: values by metric, tags and host, of distributions.
        logs: logs in their order.
    """

    def __init__(self, api_key: str) -> None:
        self.api_key = api_key
        self.points: dict[tuple[str, tuple[str, ...], str, int], float] = {}
        self.types: dict[str, int] = {}
        self.spread: dict[tuple[str, tuple[str, ...], str], list[float]] = {}
        self.logs: list[dict[str, Any]] = []

    def __call__(self, request: Request) -> Answer:
        if request.headers["DD-API-KEY"] != self.api_key:
            return Answer(403, b'{"errors":["Forbidden"]}')
        if request.method != "POST" or request.path not in _PLACES:
            return Answer(404)
        model, most = _PLACES[request.path]
        if len(request.body) > most:
            return Answer(413, b'{"errors":["Payload too large"]}')
        try:
            document = json.loads(request.body)
            read = validate_and_convert_types(document, (model,), ["body"], True, True, _configuration)
            _refuse_unknown(read)
            self._keep(request.path, document)
        except (ApiTypeError, ApiValueError, ValueError, AssertionError, TypeError) as error:
            return Answer(400, json.dumps({"errors": [repr(error)]}).encode())
        return Answer(
            202, {"/api/v2/series": b'{"errors":[]}', "/api/v2/logs": b"{}"}.get(request.path, b'{"status":"ok"}')
        )

    def _keep(self, path: str, document: Any) -> None:
        if path == "/api/v2/logs":
            assert 0 < len(document) <= 1000
            assert all(len(json.dumps(log, ensure_ascii=False).encode()) <= 1_000_000 for log in document)
            assert all(log["message"] for log in document)
            _check_tags([tag for log in document for tag in log.get("ddtags", "a:b").split(",")])
            self.logs += document
        for series in document["series"] if path in ("/api/v2/series", "/api/v1/distribution_points") else ():
            assert re.fullmatch(r"[a-zA-Z][a-zA-Z0-9_.]{0,199}", series["metric"]), series["metric"]
            _check_tags(series["tags"])
            who = (series["metric"], tuple(series["tags"]))
            if path == "/api/v2/series":
                host = next((item["name"] for item in series.get("resources", ()) if item["type"] == "host"), "")
                self.types[series["metric"]] = series["type"]
                self.points.update({(*who, host, point["timestamp"]): point["value"] for point in series["points"]})
            else:
                values = self.spread.setdefault((*who, series.get("host", "")), [])
                values += [value for _, found in series["points"] for value in found]


def _refuse_unknown(read: Any) -> None:
    """Refuse keys that the documents don't have; only logs may have more."""
    if isinstance(read, list):
        for item in read:
            _refuse_unknown(item)
    elif isinstance(read, ModelNormal):
        unknown = set(read.to_dict()) - set(read.attribute_map)
        if unknown and type(read).__name__ != "HTTPLogItem":
            raise ValueError(f"unknown keys {unknown}")
        for name in read.attribute_map:
            _refuse_unknown(read.get(name))


def _check_tags(tags: list[str]) -> None:
    for tag in tags:
        assert len(tag) <= 200, tag
        assert tag[0].isalpha(), tag
        assert not re.search(r"[^\w./:-]", tag), tag
