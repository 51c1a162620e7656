"""What passes between the API and the intake: an event that was found valid, and what became of it."""

from __future__ import annotations

from typing import Literal, NamedTuple

from msgspec import Struct

from balog.event import Event

__all__ = ["AcceptedEvent", "IntakeResult"]


class AcceptedEvent(NamedTuple):
    """A valid event, and its bytes as they are to be stored: one line of JSON without a newline.

    ``topic`` is where it goes whatever the document says, as failed events do; None: where the router says.
    """

    event: Event
    body: bytes
    topic: str | None = None


class IntakeResult(Struct, frozen=True, kw_only=True):
    """What became of one event.

    Attributes:
        status: 202 it is durable; 413 its topic can never take it; 429 its stream has too much waiting; 503 no store
            takes it now, and nothing of it is kept.
        store: where it is durable: "topics" or "fallback".
        stream: the stream that took it; the topic's name where none did.
        duplicate: this id was there already, and was not stored again.
        retry_after: seconds, of 429 and 503.
        reason: one line, of all but 202.
    """

    status: Literal[202, 413, 429, 503]
    store: Literal["", "topics", "fallback"] = ""
    stream: str = ""
    topic: str = ""
    duplicate: bool = False
    retry_after: float = 0.0
    reason: str = ""
