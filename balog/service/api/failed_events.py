"""Stores rejected events unchanged, so that they can be repaired and replayed (``balog replay --patch``)."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
from msgspec import Raw

from balog.common.token_bucket import TokenBucket
from balog.event import Event, encode
from balog.service.api.item_reader import RejectedItem
from balog.service.intake.batch import AcceptedEvent
from balog.service.intake.router import FAILED_EVENTS_TOPIC

_PER_SECOND = 200.0
_BYTES_PER_SECOND = 2.0 * (1 << 20)
_BURST = 10.0  # seconds' worth that may come at once


class FailedEvents:
    """Makes ``failed_event`` events from rejected items, with a rate limit that protects the disk.

    The limit is 200 events and 2 MiB per second, with a burst of ten seconds. Items above the limit are rejected
    without being stored. Not thread-safe.

    Args:
        service: the name of the service.
    """

    def __init__(self, service: str) -> None:
        self._service = service
        self._events = TokenBucket(_PER_SECOND, _PER_SECOND * _BURST)
        self._bytes = TokenBucket(_BYTES_PER_SECOND, _BYTES_PER_SECOND * _BURST)

    def make(
        self, item: bytes, rejected: RejectedItem, form: str, sender: str, channel: str | None = None
    ) -> AcceptedEvent | None:
        """Return the event that holds a rejected item, or None above the rate limit."""
        if not self._admit(len(item)):
            return None
        payload: dict[str, Any] = {
            "cls_type": "failed_event",
            "version": "1.0.0",
            "data": base64.b64encode(item).decode(),
            "form": "protobuf" if form == "protobuf" else "json",
            "problems": rejected.problems,
        }
        named = {
            "event": rejected.id,
            "type": rejected.type,
            "type_version": rejected.version,
            "channel": channel,
            "sender": sender,
            "service": self._service,
        }
        payload |= {name: value for name, value in named.items() if value}
        event = Event.new(FAILED_EVENTS_TOPIC, Raw(msgspec.json.encode(payload)), level="WARNING")
        return AcceptedEvent(event, encode(event), FAILED_EVENTS_TOPIC)

    def _admit(self, size: int) -> bool:
        if self._events.available < 1 or self._bytes.available < size:
            return False
        self._events.take()
        self._bytes.take(size)
        return True
