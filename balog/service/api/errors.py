"""The error that rejects a whole request."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec


class ApiError(Exception):
    """A request is rejected as a whole; nothing of it is stored.

    Args:
        status: HTTP status.
        problem: the reason and the remedy in one line, without content of the body.
        path: JSONPath in the body; ``$`` is the whole body.
        retry_after: seconds after which a retry may succeed.
        headers: further headers of the answer.
    """

    def __init__(
        self,
        status: int,
        problem: str,
        path: str = "$",
        *,
        retry_after: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(problem)
        self.status = status
        self.problem = problem
        self.path = path
        self.headers = dict(headers or {})
        if retry_after is not None:
            self.headers["Retry-After"] = str(math.ceil(retry_after))

    def body(self) -> bytes:
        """Return the body of the answer: ``{"problem": …, "path": …}``."""
        return msgspec.json.encode({"problem": self.problem, "path": self.path}) + b"\n"
