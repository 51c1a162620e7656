"""What the endpoints share: the caller's rights, and answers in JSON, also to errors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from balog.common.errors import BalogError, ConfigError
from balog.registry import (
    IncompatibleError,
    InvalidSchemaError,
    UnknownTypeError,
    UnknownVersionError,
    VersionTakenError,
)
from balog.service.api.context import ServiceContext
from balog.service.api.errors import ApiError
from balog.service.api.tokens import ANONYMOUS, Right, TokenEntry
from balog.service.control.store import ControlError, VersionConflict
from balog.service.remote_registry import SchemaRejection

Endpoint = Callable[[Request], Awaitable[Response]]


def authorize(service: ServiceContext, request: Request, *rights: Right, type: str | None = None) -> TokenEntry:
    """Return the sender of a request.

    Args:
        rights: one of them suffices.

    Raises:
        ApiError: 401 without a valid token, 403 if it lacks the right, also for a type if one is given.
    """
    caller = principal_of(service, request.headers.get("authorization", ""))
    caller.check(next((right for right in rights if right in caller.may), rights[0]), type)
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


def explain_control(error: BalogError) -> tuple[Any, int]:
    """Return the content and the status of the answer for an error of the version store."""
    content = {"problem": str(error), "path": "$"}
    if isinstance(error, VersionConflict):
        return {**content, "head": error.head, "base": error.base}, 409
    return content, 404 if isinstance(error, ControlError) else 503


def explain_registry(error: BalogError) -> tuple[SchemaRejection, int]:
    """Return the content and the status of the answer for an error of the registry."""
    match error:
        case UnknownTypeError() | UnknownVersionError():
            return SchemaRejection(str(error), kind="unknown"), 404
        case VersionTakenError():
            return SchemaRejection(str(error), kind="taken"), 409
        case IncompatibleError():
            return SchemaRejection(str(error), kind="incompatible", verdict=error.verdict), 422
        case InvalidSchemaError():
            return SchemaRejection(error.reason, error.path or "$", kind="schema"), 422
        case ConfigError():
            return SchemaRejection(error.reason, kind="name"), 422
    return SchemaRejection(str(error)), 503  # the store is unreachable, or packages are missing
