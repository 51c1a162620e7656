"""The service as an ASGI application: its routes, and one form for all errors."""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route

from balog.common.errors import BalogError
from balog.delivery.notices import ThrottledNotices
from balog.service.api import control_api, schemas_api
from balog.service.api.bodies import ClientDisconnected, Receive
from balog.service.api.context import ServiceContext
from balog.service.api.endpoints import authorize, error_response, explain_control, explain_registry, json_response
from balog.service.api.errors import ApiError
from balog.service.api.events_api import EventsApi

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_EVENTS = "/v1/events"
_JSON = (b"content-type", b"application/json")
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_INTERNAL_ERROR = ApiError(500, "an internal error of the service, which was reported to its operator")
_PROBES = frozenset({"/health", "/ready"})


class Application:
    """The ASGI application of a service."""

    def __init__(self, service: ServiceContext) -> None:
        self._service = service
        self._events = EventsApi(service)
        self._routes = [
            Route("/health", _health, methods=["GET"]),
            Route("/ready", _ready(service), methods=["GET"]),
            Route("/metrics", _metrics(service), methods=["GET"]),
            Route("/openapi.json", _openapi, methods=["GET"]),
            *schemas_api.routes(service),
            *control_api.routes(service),
        ]
        self._notices = ThrottledNotices("defect", service.say)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        is_events = scope["path"] == _EVENTS

        async def answer(message: MutableMapping[str, Any]) -> None:
            with suppress(RuntimeError):  # uvloop: the connection closed while earlier answers were pending
                await send(message)

        try:
            if self._service.tokens is None and scope["path"] not in _PROBES:
                _check_is_local(scope)
            if is_events:
                status = await self._post(scope, receive, answer)
            else:
                response = await self._dispatch(scope, receive)
                status = response.status_code
                await response(scope, receive, answer)
        except ClientDisconnected:
            status = 0
        except Exception as error:
            response = self._explained(scope, error)
            status = response.status_code
            await response(scope, receive, answer)
        path = _EVENTS if is_events else _path_of(scope, "other")
        self._service.metrics.count_request(path, status)

    async def _post(self, scope: Scope, receive: Receive, send: Send) -> int:
        if scope["method"] != "POST":
            raise ApiError(405, "expected POST", headers={"Allow": "POST"})
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        reply = await self._events.post(scope["query_string"], headers, receive)
        answer = [_JSON, (b"content-length", str(len(reply.body)).encode())]
        if reply.retry_after is not None:
            answer.append((b"retry-after", str(reply.retry_after).encode()))
        await send({"type": "http.response.start", "status": reply.status, "headers": answer})
        await send({"type": "http.response.body", "body": reply.body})
        return reply.status

    async def _dispatch(self, scope: Scope, receive: Receive) -> Response:
        methods: set[str] = set()
        for route in self._routes:
            match, matched = route.matches(scope)
            if match is not Match.NONE:
                scope.update(matched, route=route)
                methods |= route.methods or set()
            if match is Match.FULL:
                response: Response = await route.endpoint(Request(scope, receive))
                return response
        if methods:
            raise ApiError(405, "not with this method", headers={"Allow": ", ".join(sorted(methods))})
        raise ApiError(404, "there is no such path; see /openapi.json")

    def _explained(self, scope: Scope, error: Exception) -> Response:
        if isinstance(error, ApiError):
            return error_response(error)
        if isinstance(error, BalogError) and scope["path"].startswith("/v1/schemas"):
            return json_response(*explain_registry(error))
        if isinstance(error, BalogError) and scope["path"] not in (_EVENTS, "/metrics"):
            return json_response(*explain_control(error))
        self._report(scope, error)
        return error_response(_INTERNAL_ERROR)

    def _report(self, scope: Scope, error: Exception) -> None:
        """Report the code location, never request data, each once."""
        frame = traceback.extract_tb(error.__traceback__)[-1]
        fault = f"{type(error).__name__} at {Path(frame.filename).name}:{frame.lineno}"
        line = f"{scope['method']} {_path_of(scope, _EVENTS)}: {fault}"
        self._notices.send_once(f"{line}, answered with 500; this is a defect of the service")


def _path_of(scope: Scope, default: str) -> str:
    """Return the path as the API names it, never an arbitrary one of a client."""
    route = scope.get("route")
    return default if route is None else str(route.path)


def _check_is_local(scope: Scope) -> None:
    """Reject requests that a page of another site makes a browser on this machine send.

    A browser sends the page's site in ``Origin``, and the name that it used for this machine in ``Host``.
    """
    headers = dict(scope["headers"])
    host, origin = (headers.get(name, b"").decode("latin-1") for name in (b"host", b"origin"))
    if not host:
        return
    try:
        hostname = urlsplit(f"//{host}").hostname or ""
        is_same = not origin or urlsplit(origin).netloc == host
    except ValueError:
        hostname, is_same = "", False
    server = scope.get("server")
    if hostname not in _LOOPBACK and not (server and hostname == server[0]):
        raise ApiError(403, "without tokens, the service answers only requests for this machine's name or address")
    if not is_same:
        raise ApiError(403, "without tokens, the service rejects requests from pages of other sites")


async def _health(request: Request) -> Response:
    return json_response({"status": "alive", "problems": []})


def _ready(service: ServiceContext) -> Callable[[Request], Awaitable[Response]]:
    async def ready(request: Request) -> Response:
        problems = service.problems()
        if not service.is_ready:
            return json_response({"status": "not ready", "problems": problems}, 503)
        return json_response({"status": "degraded" if problems else "ready", "problems": problems})

    return ready


def _metrics(service: ServiceContext) -> Callable[[Request], Awaitable[Response]]:
    from prometheus_client.exposition import choose_encoder

    async def metrics(request: Request) -> Response:
        authorize(service, request, "read")
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(service.metrics.registry), headers={"content-type": content_type})

    return metrics


async def _openapi(request: Request) -> Response:
    return Response(openapi_document(), media_type="application/json")


@lru_cache(maxsize=1)
def openapi_document() -> bytes:
    """Return the OpenAPI 3.1 document of the API, which the tests check against a running service."""
    return resources.files("balog.service.api").joinpath("openapi.json").read_bytes()
