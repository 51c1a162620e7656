"""``/``, ``/v1/status`` and ``/v1/config``: the page, the status, and the versions of the control document."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from balog.common.errors import BalogError, redact_error
from balog.service.api.bodies import read_body
from balog.service.api.context import ServiceContext
from balog.service.api.endpoints import Endpoint, authorize, json_response
from balog.service.api.errors import ApiError
from balog.service.api.page import page
from balog.service.api.tokens import TokenEntry
from balog.service.control.folder import FolderControl
from balog.service.control.inspector import TopicView
from balog.service.control.store import Applied, DocumentVersion, ServiceStatus
from balog.service.control.validation import read_document
from balog.service.intake.intake import IntakeState
from balog.service.jobs import JobStatus

T = TypeVar("T")
_MAX_DOCUMENT = 4 << 20
_MAX_ENTRIES = 1000
_MAX_NUMBER = 99_999_999
_MAX_MESSAGE = 2000
_ENTRIES = 10
_REFRESH_SECONDS = 2.0  # seconds


def routes(service: ServiceContext) -> list[Route]:
    """Return the routes of a service."""
    endpoints = _Endpoints(service)
    return [
        Route("/", endpoints.front, methods=["GET"]),
        Route("/v1/status", endpoints.status, methods=["GET"]),
        *(Route(path, endpoints.reading(find), methods=["GET"]) for path, find in _VERSIONS.items()),
        Route("/v1/config", endpoints.push, methods=["POST"]),
        Route("/v1/config/rollback", endpoints.rollback, methods=["POST"]),
    ]


class _Endpoints:
    def __init__(self, service: ServiceContext) -> None:
        self._service = service
        self._reporter = StatusReporter(service)

    async def front(self, request: Request) -> Response:
        content, headers = page()
        return Response(content, headers=headers)

    async def status(self, request: Request) -> Response:
        authorize(self._service, request, "read", "configure")
        return json_response(await run_in_threadpool(self._reporter.status))

    def reading(self, find: Find) -> Endpoint:
        """Return an endpoint that answers with what a function finds in the version store."""

        async def endpoint(request: Request) -> Response:
            authorize(self._service, request, "read", "configure")
            return json_response(await _call(self._service, lambda control: find(control, request)))

        return endpoint

    async def push(self, request: Request) -> Response:
        caller = authorize(self._service, request, "configure")
        message, base = _text(request, "message"), _number(request, "base")
        data = await read_body(request.receive, request.headers, _MAX_DOCUMENT)
        _, problems = await run_in_threadpool(read_document, data)
        if problems:
            details = [{"path": problem.path or "$", "reason": problem.reason} for problem in problems]
            return json_response(
                {"problem": f"{len(details)} problems", "path": details[0]["path"], "problems": details}, 422
            )
        return await self._change(caller, lambda control, who: control.push(data, who=who, message=message, base=base))

    async def rollback(self, request: Request) -> Response:
        caller = authorize(self._service, request, "configure")
        message, base, number = _text(request, "message"), _number(request, "base"), _number(request, "number")
        return await self._change(
            caller, lambda control, who: control.rollback(number, who=who, message=message, base=base)
        )

    async def _change(self, caller: TokenEntry, make: Callable[[FolderControl, str], DocumentVersion]) -> Response:
        """Make a version in the caller's name, and answer when this service has tried it."""
        who = caller.name or "an unnamed caller on this machine"
        entry = await _call(self._service, lambda control: make(control, who))
        status = await run_in_threadpool(self._service.applier.await_version, entry.number)
        applied = Applied(number=status.number, state=status.state, reason=status.reason)
        return json_response({**msgspec.to_builtins(entry), "applied": applied}, 201)


def _newest(control: FolderControl, request: Request) -> dict[str, Any]:
    head = control.head()
    document = control.document(head.sha) if head else b"{}"
    return {"number": head.number if head else 0, "document": msgspec.Raw(document)}


Find = Callable[[FolderControl, Request], Any]
_VERSIONS: dict[str, Find] = {
    "/v1/config": _newest,
    "/v1/config/history": lambda control, request: control.entries(_number(request, "limit", 1, _MAX_ENTRIES) or 100),
    "/v1/config/history/{number:int}": lambda control, request: control.entry(request.path_params["number"]),
    "/v1/config/documents/{sha}": lambda control, request: msgspec.Raw(control.document(request.path_params["sha"])),
    "/v1/config/services": lambda control, request: control.services(),
}


async def _call(service: ServiceContext, ask: Callable[[FolderControl], T]) -> T:
    control: FolderControl | None = service.control
    if control is None:
        raise ApiError(404, "this service has no version store; name one: control, in its config")
    return await run_in_threadpool(partial(ask, control))


def _text(request: Request, name: str) -> str:
    text = request.query_params.get(name, "")
    if len(text) > _MAX_MESSAGE:
        raise ApiError(422, f"{name}: at most {_MAX_MESSAGE} characters")
    return text


def _number(request: Request, name: str, least: int = 0, most: int = _MAX_NUMBER) -> int | None:
    text = request.query_params.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 8 and least <= int(text) <= most):
        raise ApiError(422, f"{name}: expected a number from {least} to {most}")
    return int(text)


class EventCount(Struct, frozen=True):
    """The number of events of a stream by status and, for 202, by store, since the service started."""

    stream: str
    status: str
    store: str
    count: int


class StatusReport(Struct, frozen=True, kw_only=True):
    """The status report. Counters start at 0 with the service; two reports give rates.

    Attributes:
        service: name of the service; ``uptime`` in seconds; ``time`` in seconds since the epoch.
        events: the outcomes of events.
        intake: the state of the intake.
        topics: those of the home, as they were a moment ago; ``topics_error`` when they can't be listed.
        document: the applied version and its state; None without a version store.
        services: the last report of every service with the same version store.
        history: the newest versions, in descending order.
        control_error: why versions can't be read, "" when they can.
    """

    service: str
    uptime: float
    time: float
    events: list[EventCount]
    intake: IntakeState
    topics: list[TopicView]
    topics_error: str
    jobs: list[JobStatus]
    document: ServiceStatus | None
    services: list[ServiceStatus]
    history: list[DocumentVersion]
    control_error: str


class StatusReporter:
    """Collects the status of a service. Thread-safe. The version store is read every two seconds at most."""

    def __init__(self, service: ServiceContext) -> None:
        self._service = service
        self._lock = threading.Lock()
        self._refreshed = float("-inf")
        self._services: list[ServiceStatus] = []
        self._history: list[DocumentVersion] = []
        self._error = ""

    def status(self) -> StatusReport:
        """Collect the report; this may read from the version store."""
        service = self._service
        if service.control is not None:
            self._refresh(service.control)
        own = service.applier.status()
        outcomes = sorted(service.metrics.outcomes().items())
        return StatusReport(
            service=service.applier.service,
            uptime=round(time.monotonic() - service.started, 3),
            time=time.time(),
            events=[EventCount(stream, status, store, count) for (stream, status, store), count in outcomes],
            intake=service.intake.state(),
            topics=service.inspector.topics(),
            topics_error=service.inspector.error,
            jobs=own.jobs,
            document=own if service.control is not None else None,
            services=self._services,
            history=self._history,
            control_error=self._error,
        )

    def _refresh(self, control: FolderControl) -> None:
        if time.monotonic() - self._refreshed < _REFRESH_SECONDS or not self._lock.acquire(blocking=False):
            return  # while one thread waits for a slow store, the others use the last result
        try:
            self._services, self._history = control.services(), control.entries(_ENTRIES)
            self._error = ""
        except BalogError as error:
            self._error = redact_error(str(error))
        finally:
            self._refreshed = time.monotonic()
            self._lock.release()
