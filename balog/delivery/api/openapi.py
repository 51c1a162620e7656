"""What the API is, for programs: OpenAPI 3.1, held against a running service by the tests."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources

__all__ = ["document"]


@lru_cache(maxsize=1)
def document() -> bytes:
    """Return the document, ``balog/delivery/api/openapi.json``."""
    return resources.files("balog.delivery.api").joinpath("openapi.json").read_bytes()
