"""The base of sinks over HTTP: their connections, headers of a config, and events of which one request was taken."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated

from msgspec import Meta

from balog.common.errors import ConfigError
from balog.common.http import HttpClient
from balog.common.secrets import Secret
from balog.event import Event
from balog.sinks.base import Delivery

_MAX_PARTIAL = 20_000
_SOUNDS_SECRET = re.compile(r"auth|cookie|key|password|secret|signature|token", re.IGNORECASE)
_OURS = frozenset({"host", "connection", "content-length", "content-type", "content-encoding", "transfer-encoding"})


_Name = Annotated[str, Meta(min_length=1, max_length=200)]
_Value = Annotated[str, Meta(max_length=8000)]

Headers = Annotated[
    dict[_Name, _Value | Secret],
    Meta(
        max_length=50,
        description="Further headers of each request; a credential is a secret by reference.",
        examples=[{"X-Source": "balog"}],
    ),
]


class HttpSink:
    """A sink with one client, which connects with the first request."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    def open(self) -> None:
        """Do nothing: the first request connects."""

    def probe(self) -> None:
        """Check that the server is reachable; see ``Sink``."""
        self._client.probe()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def reveal_headers(headers: Mapping[str, str | Secret], *, ours: str | None = None) -> dict[str, str]:
    """Return headers with the values of their secrets.

    Args:
        ours: the prefix of names that only the sink sets.

    Raises:
        ConfigError: a secret is missing or given as text, or the sink sets the header itself.
    """
    revealed = {}
    for name, value in headers.items():
        if name.lower() in _OURS or (ours and name.lower().startswith(ours)):
            raise ConfigError(f"{name} is set by the sink itself", path="headers")
        if isinstance(value, str) and _SOUNDS_SECRET.search(name):
            raise ConfigError('is a secret; give {"env": "NAME"} or {"file": "PATH"}', path=f"headers.{name}")
        revealed[name] = value.reveal(f"headers.{name}") if isinstance(value, Secret) else value
    return revealed


class PartialDeliveries:
    """Remembers events of which one request was taken and another was not, so that only the other is sent again.

    Otherwise the counters of a run's event would be added again with each retry of its log.
    """

    def __init__(self) -> None:
        self._taken: dict[str, set[str]] = {}  # event id -> requests

    def lacks(self, request: str, event: Event) -> bool:
        """Return whether an event is still to be sent in such a request."""
        return not self._taken or request not in self._taken.get(event.header.id, ())

    def settle(
        self, batch: Sequence[Delivery], taken: Mapping[str, Collection[int]], remaining: Collection[int]
    ) -> None:
        """Record the outcome of a batch.

        Args:
            taken: the indexes of the events that were taken, by request.
            remaining: the indexes of the events that come again.
        """
        if not remaining and not self._taken:
            return
        for index, (event, _) in enumerate(batch):
            name = event.header.id
            if index not in remaining:
                self._taken.pop(name, None)
            elif requests := {request for request, indexes in taken.items() if index in indexes}:
                self._taken[name] = self._taken.get(name, set()) | requests
        while len(self._taken) > _MAX_PARTIAL:
            del self._taken[next(iter(self._taken))]
