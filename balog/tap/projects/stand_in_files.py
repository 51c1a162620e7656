"""The tests of a new project: a stand-in of the source, and its answers, made from the schemas of the streams."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from balog.tap.projects.model import ApiDescription
from balog.tap.projects.source_text import Code, fill, literal

_RECORDS = 3
_MAX_DEPTH = 6


def sample_config(api: ApiDescription) -> dict[str, Any]:
    """Return a config with a placeholder for each setting."""
    settings = {**api.sign_in.settings, **api.settings}
    config: dict[str, Any] = {"base_url": api.base_url or "https://api.example.com"}
    for name, value in settings.items():
        if name != "token_file":
            kind = value.get("type")
            text = f"your {name.replace('_', ' ')}"
            config[name] = value.get("default", text if kind == "string" else sample_value(value, 1))
    return config


def answers(api: ApiDescription) -> dict[str, Any]:
    """Return the answers of the stand-in by path, and the parameters by which it filters."""
    records: dict[str, list[Any]] = {}
    responses: dict[str, Any] = {}
    filters: dict[str, list[str]] = {}
    for plan in api.streams:
        for parent in records.get(plan.parent.name, []) if plan.parent is not None else [None]:
            path = _filled(plan.path, parent)
            before = records.setdefault(plan.name, [])
            own = {name: value for name, value in plan.schema["properties"].items() if name not in plan.from_parent}
            samples = [
                {name: sample_value(value, len(before) + number) for name, value in own.items()}
                for number in range(1, _RECORDS + 1)
            ]
            before += samples
            responses[path] = {plan.items: samples} if plan.items else samples
            if plan.replication_key:
                filters[path] = [plan.since, plan.replication_key, plan.items]
    if "token_url" in api.sign_in.settings:
        responses["/token"] = {"access_token": "token-of-the-tests", "token_type": "bearer", "expires_in": 3600}
    return {"answers": responses, "filters": filters}


def sample_value(schema: Mapping[str, Any], number: int, depth: int = 0) -> Any:
    """Return a value of a schema; numbers and texts differ by a number."""
    if depth > _MAX_DEPTH:
        return None
    for keyword in ("anyOf", "allOf"):
        parts = [part for part in schema.get(keyword, ()) if part != {"type": "null"}]
        if parts and "type" not in schema:
            return sample_value(parts[0], number, depth + 1)
    kinds = schema.get("type", "string")
    kinds = [kinds] if isinstance(kinds, str) else kinds
    kind = next((each for each in kinds if each != "null"), "null")
    if kind == "object":
        return {name: sample_value(inner, number, depth + 1) for name, inner in schema.get("properties", {}).items()}
    if kind == "array":
        return [sample_value(schema["items"], number, depth + 1)] if schema.get("items") else []
    day = f"2026-01-{1 + number % 28:02}"
    text = {"date-time": f"{day}T00:00:00Z", "date": day}.get(str(schema.get("format")), f"text {number}")
    return {"integer": number, "number": number + 0.5, "boolean": True, "string": text}.get(kind)


def _filled(path: str, parent: Any) -> str:
    def fill(match: re.Match[str]) -> str:
        name = match[1]
        value = f"your {name.partition('.')[2].replace('_', ' ')}" if name.startswith("config.") else parent[name]
        return quote(str(value), safe="")

    return re.sub(r"\{([^{}]*)\}", fill, path)


def test_file(package: str, api: ApiDescription) -> str:
    """Return the tests: discovery, a sync, and the practices of Singer."""
    config = {**sample_config(api), "base_url": Code("source.url")}
    if "token_url" in api.sign_in.settings:
        config["token_url"] = Code('f"{source.url}/token"')
    counts = {plan.name: _RECORDS * (_RECORDS if plan.parent is not None else 1) for plan in api.streams}
    return fill(
        "test_tap.py",
        package=package,
        name=package.replace("_", "-"),
        config=literal(config, 4, len("return ")),
        counts=literal(counts, 0, len("RECORDS: dict[str, int] = ")),
    )
