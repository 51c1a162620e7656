"""Counters and a snapshot of an engine."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import field

from balog.common.stats import Stats, counter, gauge


class EngineStats(Stats):
    """Counters of a run, in messages; ``failed`` in attempts, of each consumer for each event."""

    component: ClassVar[str] = "engine"
    received: Annotated[int, counter("Messages whose handling began.")] = 0
    succeeded: Annotated[int, counter("Messages that every interested consumer handled.")] = 0
    failed: Annotated[int, counter("Failed attempts, of each consumer for each event.")] = 0
    dead: Annotated[int, counter("Messages that were dead-lettered: not events, or failed too often.")] = 0
    unwanted: Annotated[int, counter("Messages that no consumer wanted.")] = 0
    unwanted_types: dict[str, int] = field(default_factory=dict)
    """``unwanted`` by payload type; beyond 20 types, the others count together."""
    duplicates: Annotated[int, counter("Messages that were acked because their consumers had succeeded before.")] = 0


class EngineState(Stats):
    """A snapshot of an engine.

    Attributes:
        draining: the engine stops and waits for handlers.
        alive: when its main loop last turned, in seconds of ``time.monotonic``; it does at least every second.
        hung_limit: more hung calls than this end the run.
        errors: by topic, why it does not answer; "" when it does.
    """

    component: ClassVar[str] = "consumer"
    running: bool = False
    draining: bool = False
    alive: float = 0.0
    in_flight: Annotated[int, gauge("Messages in flight.")] = 0
    calls: Annotated[int, gauge("Running calls of handlers.")] = 0
    hung: Annotated[int, gauge("Handlers that took longer than their timeout and can't be ended.")] = 0
    hung_limit: int = 1
    errors: dict[str, str] = field(default_factory=dict)
