"""PagerDuty's Events API v2 as its OpenAPI document has it: checks each request, keeps the alerts that are open."""

from datetime import datetime
from typing import Any

import msgspec

from tests.stand_ins.http_server import Answer, Request

__all__ = ["ROUTING_KEY", "PagerDuty"]

ROUTING_KEY = "e93facc04764012d7bfb002500d5d1a6"
_FIELDS = {"routing_key", "event_action", "dedup_key", "client", "client_url", "links", "images", "payload"}
_PAYLOAD = {"summary", "source", "severity", "timestamp", "component", "group", "class", "custom_details"}


class PagerDuty:
    """The answers of one service.

    Args:
        routing_key: the one key that it knows.

    Attributes:
        accepted: requests that were taken, decoded.
        open: alerts by their deduplication key; the request that triggered each last.
    """

    def __init__(self, routing_key: str = ROUTING_KEY) -> None:
        self.routing_key = routing_key
        self.accepted: list[dict[str, Any]] = []
        self.open: dict[str, dict[str, Any]] = {}

    def __call__(self, request: Request) -> Answer:
        errors = _errors(request, self.routing_key)
        if errors:
            answer = {"status": "invalid event", "message": "Event object is invalid", "errors": errors}
            return Answer(400, msgspec.json.encode(answer))
        event = msgspec.json.decode(request.body)
        self.accepted.append(event)
        if event["event_action"] == "trigger":
            self.open[event["dedup_key"]] = event
        else:
            self.open.pop(event["dedup_key"], None)
        answer = {"status": "success", "message": "Event processed", "dedup_key": event["dedup_key"]}
        return Answer(202, msgspec.json.encode(answer))


def _errors(request: Request, routing_key: str) -> list[str]:
    if (request.method, request.path) != ("POST", "/v2/enqueue"):
        return [f"no such place: {request.method} {request.path}"]
    if request.headers["Content-Type"] != "application/json":
        return ["Content-Type is not application/json"]
    if len(request.body) > 512 * 1000:
        return ["larger than 512 KB"]
    event = msgspec.json.decode(request.body)
    errors = [f"unknown field {name}" for name in event.keys() - _FIELDS]
    if event.get("routing_key") != routing_key:
        errors.append("Length of 'routing_key' is incorrect (should be 32 characters)")
    if event.get("event_action") not in ("trigger", "acknowledge", "resolve"):
        errors.append("event_action")
    if not isinstance(event.get("dedup_key"), str) or not 0 < len(event["dedup_key"]) <= 255:
        errors.append("dedup_key")
    if event.get("event_action") == "trigger":
        errors += _payload_errors(event.get("payload") or {})
    return errors


def _payload_errors(payload: dict[str, Any]) -> list[str]:
    errors = [f"unknown field payload.{name}" for name in payload.keys() - _PAYLOAD]
    for name in ("summary", "source", "severity"):
        if not isinstance(payload.get(name), str) or not payload[name]:
            errors.append(f"payload.{name} is missing or blank")
    if not errors and len(payload["summary"]) > 1024:
        errors.append("payload.summary is too long (maximum is 1024 characters)")
    if payload.get("severity") not in ("critical", "error", "warning", "info"):
        errors.append("payload.severity")
    for name in ("component", "group", "class"):
        if not isinstance(payload.get(name, ""), str):
            errors.append(f"payload.{name}")
    if not isinstance(payload.get("custom_details", {}), dict):
        errors.append("payload.custom_details")
    if "timestamp" in payload:
        datetime.fromisoformat(payload["timestamp"])
    return errors
