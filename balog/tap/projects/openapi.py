"""The description of an API, from its OpenAPI document."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from balog.tap.errors import SchemaError
from balog.tap.projects.documents import ApiDocument
from balog.tap.projects.model import ApiDescription
from balog.tap.projects.names import snake
from balog.tap.projects.openapi_sign_in import sign_in_of
from balog.tap.projects.openapi_streams import EndpointPlanner
from balog.tap.projects.source_text import sentence

_MAX_PATHS = 2000


def describe(location: str) -> ApiDescription:
    """Return the description of an API.

    Args:
        location: the file or URL of an OpenAPI document of version 3.

    Raises:
        SchemaError: the document cannot be read, or is not one.
    """
    document = ApiDocument(location)
    paths = document.root["paths"]
    if len(paths) > _MAX_PATHS:
        raise SchemaError(f"has more than {_MAX_PATHS} paths", location)
    info = document.mapping(document.root.get("info") or {})
    planner, skipped = EndpointPlanner(document), []
    for path in sorted(paths, key=lambda path: path.count("/")):
        safe = _safe_path(path)
        if safe is None:
            skipped.append(f"{sentence(path, 'A path')[:100]} is left out: it is not a path")
            continue
        try:
            item = document.mapping(paths[path])
            operation = item.get("get")
            if isinstance(operation, Mapping):
                planner.add(safe, operation, _parameters(document, item, operation))
        except SchemaError as error:
            skipped.append(f"GET {safe} is no stream: {error.reason}")
    sign_in = sign_in_of(document)
    settings = {name: value for name, value in planner.settings.items() if name not in sign_in.settings}
    title = sentence(str(info.get("title") or ""), "the API").rstrip(".")
    return ApiDescription(title, document.base_url(), planner.plans, sign_in, settings, skipped)


def _parameters(document: ApiDocument, *owners: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the parameters of a path and its operation; the operation's replace those of the path."""
    parameters: dict[tuple[Any, Any], dict[str, Any]] = {}
    for owner in owners:
        given = owner.get("parameters")
        for each in map(document.mapping, given if isinstance(given, list) else ()):
            if isinstance(each.get("name"), str) and each["name"]:
                parameters[str(each.get("in")), each["name"]] = each
    return list(parameters.values())


def _safe_path(path: str) -> str | None:
    """Return a path that is percent-encoded except for its parameters; None if a segment leads elsewhere."""
    if not path.startswith("/") or path.startswith("//"):
        return None
    parts = []
    for part in re.split(r"(\{[^{}/]*\})", path.partition("?")[0].partition("#")[0]):
        is_parameter = part.startswith("{") and part.endswith("}")
        parts.append(f"{{{snake(part, 'parameter')}}}" if is_parameter else quote(part, safe="/-_.~!$&'()*+,;=:@%"))
    segments = "".join(parts).split("/")
    return None if any(segment in (".", "..") for segment in segments) else "/".join(segments)
