"""The OpenAPI 3.1 document of the API; the tests check it against a running service."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources

__all__ = ["document"]


@lru_cache(maxsize=1)
def document() -> bytes:
    """Return the content of ``balog/delivery/api/openapi.json``."""
    return resources.files("balog.delivery.api").joinpath("openapi.json").read_bytes()
