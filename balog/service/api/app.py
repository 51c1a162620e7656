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

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route

from balog.delivery.notices import ThrottledNotices
from balog.service.api import control_api, schemas_api
from balog.service.api.bodies import ClientDisconnected, Receive
from balog.service.api.context import ServiceContext
from balog.service.api.endpoints import authorize, error_response, json_response
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
        self._paths: dict[Any, str] = {route.endpoint: route.path for route in self._routes}
        handlers: Any = {ApiError: self._api_error, HTTPException: self._http_error, Exception: self._failed}
        self._inner = Starlette(routes=self._routes, exception_handlers=handlers)
        self._inner.router.redirect_slashes = False  # a redirect is no answer in the one form
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
            status = await (self._post if is_events else self._dispatch)(scope, receive, answer)
        except ClientDisconnected:
            status = 0
        except ApiError as error:
            status = error.status
            await error_response(error)(scope, receive, answer)
        except Exception as error:
            status = 500
            self._report(scope, error)
            if is_events:  # Starlette has answered all other requests
                await error_response(_INTERNAL_ERROR)(scope, receive, answer)
        path = _EVENTS if is_events else self._paths.get(scope.get("endpoint"), "other")
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

    async def _dispatch(self, scope: Scope, receive: Receive, send: Send) -> int:
        status = 500

        async def send_and_record(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        await self._inner(scope, receive, send_and_record)
        return status

    async def _api_error(self, request: Request, error: Any) -> Response:
        return error_response(error)

    async def _http_error(self, request: Request, error: Any) -> Response:
        problem = {404: "there is no such path; see /openapi.json", 405: "not with this method"}
        headers = dict(error.headers or {})
        if error.status_code == 405:  # Starlette names only those of the first route of that path
            allowed = {
                method
                for route in self._routes
                if route.matches(request.scope)[0] != Match.NONE
                for method in route.methods or ()
            }
            headers["Allow"] = ", ".join(sorted(allowed))
        reason = problem.get(error.status_code, str(error.detail))
        return error_response(ApiError(error.status_code, reason, headers=headers))

    async def _failed(self, request: Request, error: Any) -> Response:
        return error_response(_INTERNAL_ERROR)

    def _report(self, scope: Scope, error: Exception) -> None:
        """Report the code location, never request data, each once."""
        path = self._paths.get(scope.get("endpoint"), _EVENTS)
        frame = traceback.extract_tb(error.__traceback__)[-1]
        line = f"{scope['method']} {path}: {type(error).__name__} at {Path(frame.filename).name}:{frame.lineno}"
        self._notices.send_once(f"{line}, answered with 500; this is a defect of the service")


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
