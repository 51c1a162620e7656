"""A valid event on its way to the intake, and the result of storing it."""

from __future__ import annotations

from typing import Literal, NamedTuple

from msgspec import Struct

from balog.event import Event


class AcceptedEvent(NamedTuple):
    """A valid event and its bytes to store: one line of JSON without a newline.

    ``topic`` overrides the routing, as for failed events; None means the router decides.
    """

    event: Event
    body: bytes
    topic: str | None = None


class IntakeResult(Struct, frozen=True, kw_only=True):
    """The result of storing one event.

    Attributes:
        status: 202 durable; 413 its topic can never store it; 429 its stream has too many waiting events; 503 no store
            accepts it now.
        store: where it is durable: "topics" or "fallback".
        stream: the matching stream; the topic's name if no stream matches.
        duplicate: the id was stored before, and was not stored again.
        retry_after: seconds, for 429 and 503.
        reason: one line, for all statuses except 202.
    """

    status: Literal[202, 413, 429, 503]
    store: Literal["", "topics", "fallback"] = ""
    stream: str = ""
    topic: str = ""
    duplicate: bool = False
    retry_after: float = 0.0
    reason: str = ""
