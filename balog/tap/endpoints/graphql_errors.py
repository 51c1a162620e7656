"""Errors of GraphQL answers: which fail the stream, which are retried, which leave records with nulls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from balog.common.text import one_line
from balog.tap.errors import SourceError
from balog.tap.http.outcomes import HttpError, headers_of

_RATE_LIMITED = frozenset({"RATELIMITED", "RATELIMITEXCEEDED", "RATELIMIT", "THROTTLED", "TOOMANYREQUESTS", "429"})


class RateLimitedError(SourceError):
    """The source answered that requests come too fast. A retry helps.

    Attributes:
        headers: those of the answer.
    """

    def __init__(self, reason: str, headers: Mapping[str, str]) -> None:
        super().__init__(reason, retryable=True, fault="rate limit")
        self.headers = headers


def body_of(answer: Any) -> dict[str, Any]:
    """Return the body of an answer that has data, or raise the error that it has instead.

    Raises:
        RateLimitedError: requests come too fast.
        HttpError: the answer has an error status, and no errors of GraphQL.
        SourceError: the answer has no data.
    """
    status = getattr(answer, "status", 200)
    try:
        body = answer.json()
    except SourceError:
        if status >= 400:
            raise HttpError(f"the source answered {status} without GraphQL errors", answer) from None
        raise
    if not isinstance(body, dict):
        raise SourceError("the source answered JSON that is not a GraphQL response: expected an object with data")
    errors = errors_of(body)
    if any(_is_rate_limited(error) for error in errors):
        raise RateLimitedError(f"the source answered {summary(errors)}", headers_of(answer))
    if isinstance(body.get("data"), dict):
        return body
    if errors:
        raise SourceError(f"the source answered {summary(errors)}")
    raise SourceError(f"the source answered {status} without data and without errors of GraphQL")


def errors_of(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the errors of a body; one that is not an object is a message."""
    errors = body.get("errors") or []
    errors = errors if isinstance(errors, list) else [errors]
    return [error if isinstance(error, dict) else {"message": str(error)} for error in errors]


def summary(errors: list[dict[str, Any]]) -> str:
    """Return errors as one line: the first one's message, code and path, and how many others there are."""
    if not errors:
        return "no error"
    first = errors[0]
    message = first.get("message")
    text = one_line(message)[:200] if isinstance(message, str) else ""
    code, steps = _code(first), first.get("path")
    path = ".".join(map(str, steps))[:200] if isinstance(steps, list) else ""
    line = f"{text or 'an error without a message'}{f' ({code})' if code else ''}{f' at {path}' if path else ''}"
    return line if len(errors) == 1 else f"{line}, and {len(errors) - 1} other errors"


def _code(error: Mapping[str, Any]) -> str:
    extensions = error.get("extensions")
    extensions = extensions if isinstance(extensions, Mapping) else {}
    for code in (extensions.get("code"), error.get("type"), extensions.get("type"), extensions.get("classification")):
        if isinstance(code, (str, int)) and not isinstance(code, bool):
            return str(code)[:60]
    return ""


def _is_rate_limited(error: Mapping[str, Any]) -> bool:
    return "".join(char for char in _code(error).upper() if char.isalnum()) in _RATE_LIMITED
