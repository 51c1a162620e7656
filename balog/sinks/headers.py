"""Additional headers of a sink's requests: strings, and references to secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta

from balog.errors import ConfigError
from balog.secrets import Secret

_SOUNDS_SECRET = re.compile(r"auth|cookie|key|password|secret|signature|token", re.IGNORECASE)
_OURS = frozenset({"host", "connection", "content-length", "content-type", "content-encoding", "transfer-encoding"})

_Name = Annotated[str, Meta(min_length=1, max_length=200)]
_Value = Annotated[str, Meta(max_length=8000)]

Headers = Annotated[
    dict[_Name, _Value | Secret],
    Meta(max_length=50, description="Further headers of each request; a credential is a secret by reference."),
]


def reveal_headers(headers: Mapping[str, str | Secret], *, ours: str | None = None) -> dict[str, str]:
    """Return headers with the values of their secrets.

    Args:
        ours: the prefix of names that only the sink sets.

    Raises:
        ConfigError: a secret is missing or given as text, or the sink sets the header itself.
    """
    found = {}
    for name, value in headers.items():
        if name.lower() in _OURS or (ours and name.lower().startswith(ours)):
            raise ConfigError(f"{name} is set by the sink itself", path="headers")
        if isinstance(value, str) and _SOUNDS_SECRET.search(name):
            raise ConfigError('is a secret; give {"env": "NAME"} or {"file": "PATH"}', path=f"headers.{name}")
        found[name] = value.reveal(f"headers.{name}") if isinstance(value, Secret) else value
    return found
