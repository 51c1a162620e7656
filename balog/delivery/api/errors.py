"""A request that is refused as a whole, and the one form in which that is told."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

__all__ = ["ApiError"]


class ApiError(Exception):
    """A request is refused as a whole: nothing of it is kept.

    Args:
        status: of HTTP.
        problem: one line: what is wrong and what would do; nothing of the body is in it.
        path: where in the body, as a JSONPath; ``$`` is the whole of it.
        retry_after: seconds after which the same request may be taken.
        headers: more of the answer.
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
        """Return the answer: ``{"problem": …, "path": …}``."""
        return msgspec.json.encode({"problem": self.problem, "path": self.path}) + b"\n"
