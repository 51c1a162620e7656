"""What gives the schemas of streams."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

__all__ = ["SchemaSource", "generated", "json_file"]

SchemaSource = Callable[[Any, str], dict[str, Any]]
"""Called as ``source(client, stream)`` when schemas are wanted; gives a JSON Schema, its references resolved.
``client`` is a function that gives the tap's client: a file needs none, and discovery must not ask for a login then."""


def json_file(path: str) -> SchemaSource:
    """Take a schema from a JSON file; a relative path is seen from the file that calls this."""

    def read(client: Any, stream: str) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.json.decode(Path(path).read_bytes(), type=dict[str, Any])
        return found

    return read


def generated(function: Callable[[Any], dict[str, dict[str, Any]]]) -> SchemaSource:
    """Take schemas from a function of the client that gives those of several streams by name; asked once."""
    found: dict[str, dict[str, Any]] = {}

    def read(client: Any, stream: str) -> dict[str, Any]:
        if not found:
            found.update(function(client()))
        return found[stream]

    return read
