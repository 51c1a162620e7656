"""The settings of an engine, checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

from balog.common.backoff import LONGEST_BACKOFF, Backoff
from balog.common.errors import ConfigError
from balog.consumers.hooks import Hook
from balog.consumers.ledgers.ledger import Ledger
from balog.consumers.operator import Operator
from balog.consumers.queueing.in_flight import Admission
from balog.event import Event
from balog.topics import Topics
from balog.topics.base import check_name

Unwanted = Literal["ack", "keep", "dead"]
"""What becomes of an event that no consumer of its topic wants."""


@dataclass(frozen=True, kw_only=True)
class EngineSettings:
    """The arguments of :class:`~balog.consumers.Engine`, which describes them.

    Raises:
        ConfigError: a value out of its range.
    """

    topics: Topics
    operator: Operator
    group: str
    concurrency: int
    pollers: int
    batch: int
    prefetch: int | None
    lease: float
    max_attempts: int
    first_delay: float | None
    drain: float
    ledger: Ledger | None
    hooks: tuple[Hook, ...]
    default_event_handler: Callable[[Event], object] | None
    admission: Admission | None
    unwanted: Unwanted

    def __post_init__(self) -> None:
        check_name("group", self.group)
        for name in ("concurrency", "pollers", "batch", "max_attempts"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise ConfigError(f"{name} {value!r} can't be; expected a whole number from 1")
        if self.prefetch is not None and (not isinstance(self.prefetch, int) or self.prefetch < 0):
            raise ConfigError(f"prefetch {self.prefetch!r} can't be; expected a whole number from 0")
        if self.unwanted not in get_args(Unwanted):
            raise ConfigError(f"unwanted {self.unwanted!r} can't be; expected one of {', '.join(get_args(Unwanted))}")

    def backoff(self, until_empty: bool) -> Backoff:
        """Return the backoff of consumers that declare none."""
        first = self.first_delay if self.first_delay is not None else 0.1 if until_empty else 1.0
        return Backoff(first, max(first, LONGEST_BACKOFF))
