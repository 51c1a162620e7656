"""``/``, ``/v1/status`` and ``/v1/config``: the page, the status, and the versions of the control document."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from balog.delivery.api.bodies import read_whole
from balog.delivery.api.context import ServiceContext
from balog.delivery.api.errors import ApiError
from balog.delivery.api.page import page
from balog.delivery.api.status import StatusReporter
from balog.delivery.api.tokens import ANONYMOUS, Principal, Right
from balog.delivery.control.diff import diff
from balog.delivery.control.folder import FolderControl
from balog.delivery.control.store import Applied, ControlError, DocumentVersion, VersionConflict
from balog.delivery.control.validation import read_document
from balog.errors import BalogError

__all__ = ["routes"]

T = TypeVar("T")
_MAX_DOCUMENT = 4 << 20
_MAX_ENTRIES = 1000
_MAX_NUMBER = 99_999_999
_MAX_MESSAGE = 2000


def routes(service: ServiceContext) -> list[Route]:
    """Return the routes of a service."""
    endpoints = _Endpoints(service)
    return [
        Route("/", endpoints.front, methods=["GET"]),
        Route("/v1/status", _with_errors(endpoints.status), methods=["GET"]),
        Route("/v1/config", _with_errors(endpoints.newest), methods=["GET"]),
        Route("/v1/config", _with_errors(endpoints.push), methods=["POST"]),
        Route("/v1/config/rollback", _with_errors(endpoints.rollback), methods=["POST"]),
        Route("/v1/config/history", _with_errors(endpoints.history), methods=["GET"]),
        Route("/v1/config/history/{number:int}", _with_errors(endpoints.entry), methods=["GET"]),
        Route("/v1/config/documents/{sha}", _with_errors(endpoints.document), methods=["GET"]),
        Route("/v1/config/diff", _with_errors(endpoints.difference), methods=["GET"]),
        Route("/v1/config/services", _with_errors(endpoints.services), methods=["GET"]),
        Route("/v1/config/services", _with_errors(endpoints.forget), methods=["DELETE"]),
    ]


class _Endpoints:
    def __init__(self, service: ServiceContext) -> None:
        self._service = service
        self._reporter = StatusReporter(service)

    async def front(self, request: Request) -> Response:
        content, headers = page()
        return Response(content, headers=headers)

    async def status(self, request: Request) -> Response:
        _authorize(self._service, request, "read")
        return _json(await run_in_threadpool(self._reporter.status))

    async def newest(self, request: Request) -> Response:
        _authorize(self._service, request, "read")

        def find(control: FolderControl) -> dict[str, Any]:
            head = control.head()
            document = control.document(head) if head else b"{}"
            return {"number": head.number if head else 0, "document": msgspec.Raw(document)}

        return _json(await _call(self._service, find))

    async def push(self, request: Request) -> Response:
        caller = _authorize(self._service, request, "configure")
        message, base = _text(request, "message"), _number(request, "base")
        data = await read_whole(request, _MAX_DOCUMENT, "document")
        _, problems = await run_in_threadpool(read_document, data)
        if problems:
            found = [{"path": one.path or "$", "reason": one.reason} for one in problems]
            return _json({"problem": f"{len(found)} problems", "path": found[0]["path"], "problems": found}, 422)
        who = caller.name or "somebody on this machine"
        entry = await _call(self._service, lambda control: control.push(data, who=who, message=message, base=base))
        return await _applied(self._service, entry)

    async def rollback(self, request: Request) -> Response:
        caller = _authorize(self._service, request, "configure")
        message, base, number = _text(request, "message"), _number(request, "base"), _number(request, "number")
        who = caller.name or "somebody on this machine"
        entry = await _call(
            self._service, lambda control: control.rollback(number, who=who, message=message, base=base)
        )
        return await _applied(self._service, entry)

    async def history(self, request: Request) -> Response:
        _authorize(self._service, request, "read")
        limit = _number(request, "limit", least=1, most=_MAX_ENTRIES)
        return _json(await _call(self._service, lambda control: control.entries(100 if limit is None else limit)))

    async def entry(self, request: Request) -> Response:
        _authorize(self._service, request, "read")
        number = int(request.path_params["number"])
        return _json(await _call(self._service, lambda control: control.entry(number)))

    async def document(self, request: Request) -> Response:
        _authorize(self._service, request, "read")
        sha = request.path_params["sha"]
        return _json(msgspec.Raw(await _call(self._service, lambda control: control.named(sha))))

    async def difference(self, request: Request) -> Response:
        _authorize(self._service, request, "read")
        old, new = _number(request, "old"), _number(request, "new")

        def compare(control: FolderControl) -> Any:
            head = control.head()
            newest = head.number if head else 0
            last = newest if new is None else new
            first = max(last - 1, 0) if old is None else old
            before, after = (control.document(control.entry(one)) if one else b"{}" for one in (first, last))
            return {"old": first, "new": last, "changes": diff(before, after)}

        return _json(await _call(self._service, compare))

    async def services(self, request: Request) -> Response:
        _authorize(self._service, request, "read")
        return _json(await _call(self._service, lambda control: control.services()))

    async def forget(self, request: Request) -> Response:
        _authorize(self._service, request, "configure")
        name = _text(request, "service")
        await _call(self._service, lambda control: control.forget(name))
        return _json({"forgotten": name})


def _with_errors(answer: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint that answers errors in the service's form."""

    async def endpoint(request: Request) -> Response:
        try:
            return await answer(request)
        except ApiError as error:
            return Response(error.body(), error.status, error.headers, media_type="application/json")
        except VersionConflict as error:
            body = {"problem": str(error), "path": "$", "head": error.head, "base": error.base}
            return _json(body, 409)
        except ControlError as error:
            return _json({"problem": str(error), "path": "$"}, 404)
        except BalogError as error:
            return _json({"problem": str(error), "path": "$"}, 503)

    return endpoint


async def _call(service: ServiceContext, ask: Callable[[FolderControl], T]) -> T:
    control: FolderControl | None = service.control
    if control is None:
        raise ApiError(404, "this service has no version store; name one: control, in its config")
    return await run_in_threadpool(partial(ask, control))


async def _applied(service: ServiceContext, entry: DocumentVersion) -> Response:
    status = await run_in_threadpool(service.applier.await_version, entry.number)
    applied = Applied(number=status.number, state=status.state, reason=status.reason)
    return _json({**msgspec.to_builtins(entry), "applied": applied}, 201)


def _authorize(service: ServiceContext, request: Request, right: Right) -> Principal:
    tokens = service.tokens
    caller: Principal = ANONYMOUS if tokens is None else tokens.principal(request.headers.get("authorization", ""))
    if not (right == "read" and caller.may("configure")):  # the right to configure includes reading the status
        caller.check(right)
    return caller


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
        raise ApiError(422, f"{name}: want a number from {least} to {most}")
    return int(text)


def _json(content: Any, status: int = 200) -> Response:
    headers = {"Cache-Control": "no-store"}
    return Response(msgspec.json.encode(content), status, headers, media_type="application/json")
