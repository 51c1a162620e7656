"""Hooks: what wants to see an engine at work (metrics, traces, error reporters) without being part of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from balog.consumers.consumer import Consumer
from balog.event import Event
from balog.topics import Received

if TYPE_CHECKING:
    from balog.consumers.engine import Engine

__all__ = ["Hook", "Work"]


class Work(Struct, frozen=True, dict=True):
    """One call of one consumer: a single event, or a batch. A hook may keep things in its ``__dict__``.

    ``attempt`` counts this consumer's calls for the event, this one included; of a batch it is the highest.
    """

    topic: str
    consumer: Consumer
    events: tuple[Event, ...]
    attempt: int


class Hook:
    """Methods that an engine calls on its way; override the ones that are wanted, the others cost nothing.

    They are called from the engine's threads, possibly several at once, ``process`` methods from the thread (or, for
    ``async def`` handlers, the event loop's thread) that runs the handler. What they raise is logged once per hook and
    method and otherwise ignored: a hook can't fail an event.
    """

    def started(self, engine: Engine) -> None:
        """A run begins."""

    def stopped(self, engine: Engine) -> None:
        """A run is over."""

    def before_receive(self, topic: str) -> None:
        """Messages are about to be asked for."""

    def after_receive(self, topic: str, received: Sequence[Received]) -> None:
        """Messages came, maybe none."""

    def before_process(self, work: Work) -> None:
        """A handler is about to be called."""

    def after_process(self, work: Work, error: BaseException | None, seconds: float) -> None:
        """A handler returned, or raised ``error``; a ``PartialFailure`` names the events that it is about."""

    def before_ack(self, topic: str, received: Sequence[Received]) -> None:
        """Handled messages are about to be acked."""

    def after_ack(self, topic: str, received: Sequence[Received]) -> None:
        """They were acked."""

    def retried(self, work: Work, event: Event, error: BaseException, delay: float) -> None:
        """An event failed at a consumer, and will be tried there again in ``delay`` seconds."""

    def dead(self, topic: str, received: Received, event: Event | None, reason: str, consumers: Sequence[str]) -> None:
        """A message was dead-lettered; ``event`` is None when it could not be decoded."""
