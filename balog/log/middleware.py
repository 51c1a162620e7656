"""Middleware for web applications: the request's id in every event, one event for each request.

::

    app.add_middleware(balog.log.middleware.AsgiMiddleware)  # FastAPI, Starlette
    app.wsgi_app = balog.log.middleware.WsgiMiddleware(app.wsgi_app)  # Flask
"""

from __future__ import annotations

import asyncio
import contextvars
import re
import sys
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, MutableMapping
from typing import Any

from balog.event.ids import new_id
from balog.log.configuration import flush
from balog.log.context import bound
from balog.log.guard import guarded
from balog.log.logger import get_logger

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApplication = Callable[[Message, Receive, Send], Awaitable[None]]
StartResponse = Callable[..., Any]
WsgiApplication = Callable[[dict[str, Any], StartResponse], Iterable[bytes]]

_REQUEST_ID = re.compile(r"[\x21-\x7e]{1,128}")
_TRACE_PARENT = re.compile(r"[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")
_LONGEST_PATH = 1024


_CANCELLED = (asyncio.CancelledError, GeneratorExit)


def _status(given: object) -> int | None:
    return int(given) if issubclass(type(given), int) else None  # type: ignore[call-overload]


class _Request:
    """One request: the keys that its events have, and the event at its end."""

    def __init__(
        self, settings: _Settings, method: str = "", path: str = "", request_id: str = "", trace_parent: str = ""
    ) -> None:
        self._settings = settings
        self.id = request_id if _REQUEST_ID.fullmatch(request_id) else new_id()
        self.status: int | None = None
        self._began = time.perf_counter()
        self._seconds: float | None = None
        self._is_logged = False
        self.values: dict[str, Any] = {"request_id": self.id, "method": method, "path": path[:_LONGEST_PATH]}
        trace = _TRACE_PARENT.fullmatch(trace_parent)
        if trace is not None and "opentelemetry.trace" not in sys.modules:  # whose own spans are nearer
            self.values["trace_id"] = trace[1]

    @guarded(lambda self, message: message)
    def sent(self, message: Message) -> Message:
        """Read the status of an ASGI response, and return its message with the request's id."""
        if message["type"] in ("http.response.start", "websocket.accept"):
            self.status = _status(message.get("status", 101))
            headers = list(message.get("headers") or ())
            if all(name.lower() != b"x-request-id" for name, _ in headers):
                return {**message, "headers": [*headers, (b"x-request-id", self.id.encode())]}
        elif message["type"] == "websocket.close" and self.status is None:
            self.status = 403
        return message

    @guarded(lambda self, status, headers: headers)
    def started(self, status: str, headers: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """Read the status of a WSGI response, and return its headers with the request's id."""
        self.status = int(status[:3]) if status[:3].isdecimal() else None
        has_id = any(name.lower() == "x-request-id" for name, _ in headers)
        return headers if has_id else [*headers, ("X-Request-ID", self.id)]

    def responded(self) -> None:
        """Stop the clock: the response is complete."""
        if self._seconds is None:
            self._seconds = time.perf_counter() - self._began

    @guarded()
    def ended(self, error: BaseException | None = None) -> None:
        """Log the request, once."""
        if self._is_logged:
            return
        self._is_logged = True
        self.responded()
        kind = type(error)  # not isinstance: an error's __class__ may raise
        is_error = error is not None and not issubclass(kind, _CANCELLED)
        status = self.status or (500 if is_error else None)
        if error is None and self.values["path"] in self._settings.skip and (status or 0) < 500:
            return
        level = "ERROR" if is_error or (status or 0) >= 500 else "INFO" if error is None else "WARNING"
        outcome = "cancelled" if error is not None and not is_error else status
        fields = {"status": status, "seconds": round(self._seconds or 0.0, 6)}
        message = f"{self.values['method']} {self.values['path']} {outcome}"
        self._settings.log.log(level, message, exc_info=error if is_error else None, **fields)


class _Settings:
    """The options of both middlewares."""

    def __init__(self, channel: str, skip: Collection[str]) -> None:
        self.log = get_logger(channel)
        self.skip = frozenset([skip] if isinstance(skip, str) else skip)


@guarded(lambda settings, scope: _Request(settings))
def _of_scope(settings: _Settings, scope: Message) -> _Request:
    headers = {name.lower(): value for name, value in scope.get("headers", ())}
    ids = (headers.get(name, b"").decode("latin-1") for name in (b"x-request-id", b"traceparent"))
    return _Request(settings, scope.get("method", "WEBSOCKET"), scope.get("path", ""), *ids)


@guarded(lambda settings, environ: _Request(settings))
def _of_environ(settings: _Settings, environ: dict[str, Any]) -> _Request:
    path = f"{environ.get('SCRIPT_NAME', '')}{environ.get('PATH_INFO', '')}".encode("latin-1", "replace")
    ids = (environ.get(name, "") for name in ("HTTP_X_REQUEST_ID", "HTTP_TRACEPARENT"))
    return _Request(settings, environ.get("REQUEST_METHOD", ""), path.decode("utf-8", "replace"), *ids)


@guarded(lambda body, kind: False)
def _is_of(body: object, kind: object) -> bool:
    return isinstance(kind, type) and isinstance(body, kind)


class AsgiMiddleware:
    """Middleware for ASGI applications such as FastAPI and Starlette.

    Binds ``request_id``, ``method`` and ``path`` in the context of every event of a request or WebSocket, and
    ``trace_id`` of a ``traceparent`` header unless OpenTelemetry is loaded. The id is that of the header
    ``X-Request-ID`` (1 to 128 visible characters) or a new one; the response has it too. Logs an event for each
    request when its application is done, with ``status`` and ``seconds`` until the last byte: at ERROR with the
    exception if the application raised, or from status 500 on; at WARNING if it was cancelled. Delivers queued events
    when the server stops.

    Args:
        app: the application.
        channel: the channel of the events.
        skip: paths whose requests are not logged unless they fail, such as ``/health``.
    """

    def __init__(self, app: AsgiApplication, *, channel: str = "http.request", skip: Collection[str] = ()) -> None:
        self._app = app
        self._settings = _Settings(channel, skip)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Pass a connection to the application."""
        if scope["type"] in ("http", "websocket"):
            await self._request(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._lifespan(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _request(self, scope: Message, receive: Receive, send: Send) -> None:
        request = _of_scope(self._settings, scope)

        async def watched(message: Message) -> None:
            await send(request.sent(message))
            if message["type"] == "http.response.body" and not message.get("more_body"):
                request.responded()

        with bound(**request.values):
            try:
                await self._app(scope, receive, watched)
            except BaseException as error:
                request.ended(error)
                raise
            request.ended()

    async def _lifespan(self, scope: Message, receive: Receive, send: Send) -> None:
        """Flush before the server hears that the application is down; uvicorn may then end without atexit."""
        received: list[Message] = []
        has_answered = False

        async def watched_receive() -> Message:
            received.append(await receive())
            return received[-1]

        async def watched_send(message: Message) -> None:
            nonlocal has_answered
            has_answered = True
            if message["type"].startswith("lifespan.shutdown"):
                await _flush()
            await send(message)

        try:
            await self._app(scope, watched_receive, watched_send)
        except Exception:
            if has_answered:
                raise
        if has_answered:
            return
        if not received:  # the application knows no lifespan: answer in its place
            await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await _flush()
        await send({"type": "lifespan.shutdown.complete"})


async def _flush() -> None:
    await asyncio.get_running_loop().run_in_executor(None, flush)


class WsgiMiddleware:
    """Middleware for WSGI applications such as Flask, Django and Bottle.

    Does what ``AsgiMiddleware`` does for each request. The application and the iterator of its response run in a
    context of their own, so that nothing that they set reaches another request of the thread. The event follows the
    last chunk of the response.

    Args:
        app: the application.
        channel: the channel of the events.
        skip: paths whose requests are not logged unless they fail, such as ``/health``.
    """

    def __init__(self, app: WsgiApplication, *, channel: str = "http.request", skip: Collection[str] = ()) -> None:
        self._app = app
        self._settings = _Settings(channel, skip)

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """Pass a request to the application."""
        request = _of_environ(self._settings, environ)

        def start(status: str, headers: list[tuple[str, str]], *exc_info: Any) -> Any:
            return start_response(status, request.started(status, headers), *exc_info)

        context = contextvars.copy_context()
        context.run(bound(**request.values).__enter__)
        try:
            body = context.run(self._app, environ, start)
        except BaseException as error:
            context.run(request.ended, error)
            raise
        wrapper = environ.get("wsgi.file_wrapper")
        if _is_of(body, list) or _is_of(body, tuple) or _is_of(body, wrapper):
            context.run(request.ended)  # nothing of the application runs from here on
            return body
        return _Body(body, request, context)


class _Body:
    """The response's iterable, each step of which runs in the request's context."""

    def __init__(self, body: Iterable[bytes], request: _Request, context: contextvars.Context) -> None:
        self._body = body
        self._request = request
        self._context = context
        self._chunks: Iterator[bytes] | None = None

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        return self._context.run(self._next)

    def _next(self) -> bytes:
        try:
            if self._chunks is None:
                self._chunks = iter(self._body)
            return next(self._chunks)
        except StopIteration:
            self._request.responded()
            raise
        except BaseException as error:
            self._request.ended(error)
            raise

    def close(self) -> None:
        """Close the application's iterable, as servers must, and log the request."""
        self._context.run(self._close)

    def _close(self) -> None:
        try:
            close = getattr(self._body, "close", None)
            if close is not None:
                close()
        except BaseException as error:
            self._request.ended(error)
            raise
        self._request.ended()
