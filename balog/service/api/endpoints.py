"""What the endpoints share: the caller's rights, answers in JSON, and errors in the service's form."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from balog.common.errors import BalogError
from balog.service.api.context import ServiceContext
from balog.service.api.errors import ApiError
from balog.service.api.tokens import ANONYMOUS, Right, TokenEntry

Endpoint = Callable[[Request], Awaitable[Response]]


def authorize(service: ServiceContext, request: Request, right: Right, type: str | None = None) -> TokenEntry:
    """Return the sender of a request.

    Raises:
        ApiError: 401 without a valid token, 403 if it lacks the right, also for a type if one is given.
    """
    caller = principal_of(service, request.headers.get("authorization", ""))
    caller.check(right, type)
    return caller


def principal_of(service: ServiceContext, authorization: str) -> TokenEntry:
    """Return the sender that the header ``Authorization`` names.

    Raises:
        ApiError: 401, the service has tokens, and this is none of them.
    """
    return ANONYMOUS if service.tokens is None else service.tokens.principal(authorization)


def json_response(content: Any, status: int = 200) -> Response:
    """Return an answer in JSON, one line, that no cache keeps."""
    headers = {"Cache-Control": "no-store"}
    return Response(msgspec.json.encode(content) + b"\n", status, headers, media_type="application/json")


def error_response(error: ApiError) -> Response:
    """Return the answer to a rejected request."""
    return Response(error.body(), error.status, error.headers, media_type="application/json")


def with_errors(endpoint: Endpoint, explain: Callable[[BalogError], tuple[Any, int]]) -> Endpoint:
    """Return an endpoint that answers errors in the service's form.

    Args:
        explain: returns the content and the status for an error that is not an ``ApiError``.
    """

    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except ApiError as error:
            return error_response(error)
        except BalogError as error:
            return json_response(*explain(error))

    return answer
