"""What can be asked of an engine at work, for health and metrics."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

__all__ = ["EngineState"]


class EngineState(Struct, frozen=True, kw_only=True):
    """A snapshot; times are those of ``time.monotonic``.

    Attributes:
        is_running: between the begin and the end of ``run``.
        is_draining: a stop was asked for, and what is in hand is being finished.
        in_flight: messages that were received and neither acked, released nor dead-lettered yet.
        calls: calls of handlers that are under way, without the hung ones.
        hung: handlers that went on beyond their ``timeout`` and were given up, as long as they have not come back.
        received_at: by topic, when a receive came back the last time, with messages or without; None before the first.
    """

    is_running: bool = False
    is_draining: bool = False
    in_flight: int = 0
    calls: int = 0
    hung: int = 0
    received_at: Mapping[str, float | None] = {}
