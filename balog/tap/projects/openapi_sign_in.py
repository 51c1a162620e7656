"""The sign-in of an OpenAPI document's first security scheme that is supported."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from balog.tap.projects.documents import ApiDocument, is_usable
from balog.tap.projects.model import ApiSignIn
from balog.tap.projects.source_text import quoted

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
