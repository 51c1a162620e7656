"""The description of an API, from its OpenAPI document, with the sign-in of its first scheme that is supported."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from balog.tap.errors import SchemaError
from balog.tap.projects.documents import ApiDocument, is_usable
from balog.tap.projects.model import ApiDescription, ApiSignIn
from balog.tap.projects.openapi_streams import EndpointPlanner
from balog.tap.projects.source_text import quoted, sentence, snake

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
            elif isinstance(item.get("post"), Mapping):
                skipped.append(f"POST {safe} is no stream: only GET is read; if it lists records, set verb='POST'")
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


_SECRET = {"type": "string", "minLength": 1, "secret": True}
_TEXT = {"type": "string", "minLength": 1}
_APPLICATION = {"client_id": _TEXT, "client_secret": _SECRET}
_GRANT = 'config["token_url"], config["client_id"], config["client_secret"]'


def sign_in_of(document: ApiDocument) -> ApiSignIn:
    """Return how to sign in: by a scheme that the whole document requires, or by one that it has."""
    schemes = document.mapping(document.mapping(document.root.get("components") or {}).get("securitySchemes") or {})
    for name in [*_required(document), *schemes]:
        scheme = document.mapping(schemes.get(name) or {})
        make = _SCHEMES.get(str(scheme.get("type")))
        sign_in = None if make is None else make(scheme)
        if sign_in is not None:
            return sign_in
    return ApiSignIn(note="The document has no sign-in; see the sign-ins of balog for the API's.")


def _required(document: ApiDocument) -> Iterator[str]:
    given = document.root.get("security")
    for each in given if isinstance(given, list) else ():
        yield from each if isinstance(each, Mapping) else ()


def _http(scheme: Mapping[str, Any]) -> ApiSignIn | None:
    kind = str(scheme.get("scheme")).lower()
    user = {"username": _TEXT, "password": _SECRET}
    if kind == "basic":
        return ApiSignIn(["basic"], 'basic(config["username"], config["password"])', user, "HTTP Basic.")
    return _token(scheme) if kind == "bearer" else None


def _token(scheme: Mapping[str, Any]) -> ApiSignIn:
    return ApiSignIn(["bearer"], 'bearer(config["token"])', {"token": _SECRET}, "A bearer token.")


def _key(scheme: Mapping[str, Any]) -> ApiSignIn | None:
    name, location = scheme.get("name"), scheme.get("in")
    if not isinstance(name, str) or not name or not all("!" <= char <= "~" for char in name):
        return None
    if location not in ("header", "query", "cookie"):
        return None
    expression = f'{location}({quoted(name)}, config["api_key"])'
    return ApiSignIn([location], expression, {"api_key": _SECRET}, f"An API key in the {location}.")


def _oauth(scheme: Mapping[str, Any]) -> ApiSignIn | None:
    flows = scheme.get("flows")
    if not isinstance(flows, Mapping):
        return None
    for flow, grant in (("clientCredentials", "ClientCredentials"), ("password", "Password"),
                        ("authorizationCode", "RefreshToken")):  # fmt: skip
        flow_object = flows.get(flow)
        if not isinstance(flow_object, Mapping):
            continue
        url = flow_object.get("tokenUrl")
        settings: dict[str, Any] = {"token_url": {**_TEXT, **({"default": url} if is_usable(url) else {})}}
        settings |= _APPLICATION
        arguments = _GRANT
        if grant == "Password":
            settings |= {"username": _TEXT, "password": _SECRET}
            arguments = 'config["token_url"], config["username"], config["password"], config["client_id"]'
            arguments += ', config["client_secret"]'
        if grant == "RefreshToken":
            settings |= {"refresh_token": _SECRET, "token_file": {"type": "string", "description": _STORED}}
            arguments += ', config["refresh_token"], token_file=config.get("token_file")'
        return ApiSignIn([grant, "bearer"], f"bearer({grant}({arguments}))", settings, f"OAuth: {flow}.")
    return _token(scheme)


_STORED = "where new refresh tokens are stored"


_SCHEMES: dict[str, Callable[[Mapping[str, Any]], ApiSignIn | None]] = {
    "http": _http,
    "apiKey": _key,
    "oauth2": _oauth,
    "openIdConnect": _token,
}
