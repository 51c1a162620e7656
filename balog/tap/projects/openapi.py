"""The description of an API, from its OpenAPI document."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal
from urllib.parse import quote

from balog.common.errors import ConfigError
from balog.common.http.urls import check_url
from balog.tap.errors import SchemaError
from balog.tap.http import Client
from balog.tap.projects.documents import ApiDocument
from balog.tap.projects.endpoint_plan import EndpointPlanner, json_of
from balog.tap.projects.model import ApiDescription, ApiOperation, OperationParameter
from balog.tap.projects.names import UniqueNames, snake
from balog.tap.projects.openapi_sign_in import sign_in_of
from balog.tap.projects.record_schema import annotation
from balog.tap.projects.source_text import sentence

_VERBS = ("get", "post", "put", "patch", "delete", "head", "options")
_PLACES = ("path", "query", "header")
_IGNORED_HEADERS = frozenset({"accept", "authorization", "content-type", "cookie", "user-agent"})
_MAX_OPERATIONS = 2000
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_|~-]{1,100}")


def describe_api(place: str) -> ApiDescription:
    """Return the description of an API.

    Args:
        place: the file or URL of an OpenAPI document of version 3.

    Raises:
        SchemaError: the document cannot be read, or is not one.
    """
    document = ApiDocument(place)
    info = document.mapping(document.root.get("info") or {})
    api = ApiDescription(sentence(str(info.get("title") or ""), "the API").rstrip("."))
    api.base_url = usable_url(document.base_url())
    planner = EndpointPlanner(document, api.skipped)
    names = UniqueNames([*dir(Client), "Any", "config", "quote"])
    found = [*_operations(document, api.skipped)]
    for path, verb, operation, parameters in found:
        made = _operation(document, path, verb, operation, parameters, names)
        api.operations.append(made)
    for path, verb, operation, parameters in sorted(found, key=lambda each: each[0].count("/")):
        if verb == "get":
            try:
                planner.add(path, operation, parameters)
            except SchemaError as error:
                api.skipped.append(f"GET {path} is no stream: {error.reason}")
    api.streams, api.settings = planner.plans, planner.settings
    api.sign_in = sign_in_of(document)
    api.settings = {name: value for name, value in api.settings.items() if name not in api.sign_in.settings}
    return api


def usable_url(url: str) -> str:
    """Return a URL without a slash at its end; "" if it is none."""
    try:
        check_url(url)
    except ConfigError:
        return ""
    return url.rstrip("/")


def _operations(
    document: ApiDocument, skipped: list[str]
) -> Iterator[tuple[str, str, dict[str, Any], list[dict[str, Any]]]]:
    """Yield path, verb, operation and parameters."""
    count = 0
    for path, item in document.root["paths"].items():
        if path.startswith("x-"):
            continue
        safe = _safe_path(path)
        if safe is None:
            skipped.append(f"{sentence(path, 'A path')[:100]} is left out: it is not a path")
            continue
        try:
            node = document.mapping(item)
            shared = _parameters(document, node.get("parameters"))
            for verb in _VERBS:
                if not isinstance(node.get(verb), Mapping):
                    continue
                count += 1
                if count > _MAX_OPERATIONS:
                    raise SchemaError(f"has more than {_MAX_OPERATIONS} operations", document.place)
                operation = dict(node[verb])
                own = _parameters(document, operation.get("parameters"))
                given = {(each.get("in"), each.get("name")): each for each in (*shared, *own)}
                yield safe, verb, operation, list(given.values())
        except SchemaError as error:
            if count > _MAX_OPERATIONS:
                raise
            skipped.append(f"{safe} is left out: {error.reason}")


def _parameters(document: ApiDocument, given: Any) -> list[dict[str, Any]]:
    found = [document.mapping(each) for each in given] if isinstance(given, list) else []
    return [each for each in found if isinstance(each.get("name"), str) and each["name"]]


def _safe_path(path: str) -> str | None:
    """Return a path that is percent-encoded except for its parameters; None if a segment leads elsewhere."""
    if not path.startswith("/") or path.startswith("//"):
        return None
    made = []
    for part in re.split(r"(\{[^{}/]*\})", path.partition("?")[0].partition("#")[0]):
        is_parameter = part.startswith("{") and part.endswith("}")
        made.append(f"{{{snake(part, 'parameter')}}}" if is_parameter else quote(part, safe="/-_.~!$&'()*+,;=:@%"))
    segments = "".join(made).split("/")
    return None if any(segment in (".", "..") for segment in segments) else "/".join(segments)


def _operation(
    document: ApiDocument,
    path: str,
    verb: str,
    operation: Mapping[str, Any],
    given: list[dict[str, Any]],
    names: UniqueNames,
) -> ApiOperation:
    fallback = snake(f"{verb} {path}", verb)
    name = names.take(snake(str(operation.get("operationId") or fallback), fallback))
    text = operation.get("summary") or operation.get("description")
    made = ApiOperation(name, verb.upper(), path, sentence(str(text or ""), f"Send {verb.upper()} {path}"))
    arguments = UniqueNames(["self", "body", "result", "params", "quote", "Any"])
    in_path = re.findall(r"\{([^{}]*)\}", path)
    for wire in in_path:
        declared = next((each for each in given if snake(f"{{{each['name']}}}", "parameter") == wire), {})
        kind = annotation(document, declared.get("schema"))
        made.parameters.append(
            OperationParameter(wire, arguments.take(wire), "path", kind if kind in ("str", "int") else "str", True)
        )
    for each in given:
        place = each.get("in")
        if place not in _PLACES or place == "path" or (place == "header" and not _is_own_header(each)):
            continue
        kind = annotation(document, each.get("schema"))
        argument = arguments.take(snake(each["name"], "argument"))
        made.parameters.append(OperationParameter(each["name"], argument, place, kind, each.get("required") is True))
    made.has_body = bool(document.mapping(operation.get("requestBody") or {}))
    made.returns = _returned(document, operation)
    return made


def _is_own_header(parameter: Mapping[str, Any]) -> bool:
    return bool(_HEADER.fullmatch(parameter["name"])) and parameter["name"].lower() not in _IGNORED_HEADERS


def _returned(document: ApiDocument, operation: Mapping[str, Any]) -> Literal["Any", "None", "bytes"]:
    answers = operation.get("responses")
    for status, answer in answers.items() if isinstance(answers, Mapping) else ():
        if str(status).startswith("2"):
            found = document.mapping(answer)
            return "Any" if json_of(found) else "bytes" if found.get("content") else "None"
    return "Any"
