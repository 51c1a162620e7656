"""What an engine did and how it is: counters and a snapshot."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["EngineState", "EngineStats"]


class EngineStats(Struct):
    """Counters of a run, in messages.

    Attributes:
        received: messages whose handling began.
        succeeded: messages that every interested consumer handled.
        failed: failed attempts, of each consumer for each event.
        dead: messages that were dead-lettered: not events, or failed too often.
        unwanted: messages that were acked because no consumer wanted them.
        duplicates: messages that were acked because every interested consumer had succeeded before.
    """

    received: int = 0
    succeeded: int = 0
    failed: int = 0
    dead: int = 0
    unwanted: int = 0
    duplicates: int = 0


class EngineState(Struct, frozen=True):
    """A snapshot of an engine.

    Attributes:
        draining: the engine stops and waits for handlers.
        alive: when its main loop last turned, in seconds of ``time.monotonic``; it does at least every second.
        in_flight: messages in flight.
        calls: running calls of handlers.
        hung: calls that took longer than their timeout and can't be ended; more than ``hung_limit`` end the run.
        last_receive: by topic, when it last answered a receive, in seconds since the epoch; None before.
        errors: by topic, why it does not answer; "" when it does.
    """

    running: bool = False
    draining: bool = False
    alive: float = 0.0
    in_flight: int = 0
    calls: int = 0
    hung: int = 0
    hung_limit: int = 1
    last_receive: dict[str, float | None] = {}
    errors: dict[str, str] = {}
