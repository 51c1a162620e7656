"""The settings of an engine, checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Literal, get_args

from balog.common.backoff import LONGEST_BACKOFF, Backoff
from balog.common.errors import ConfigError
from balog.consumers.hooks import Hook
from balog.consumers.hub import ConsumerHub
from balog.consumers.ledgers.ledger import Ledger
from balog.consumers.operator import ConsumerOperator, Operator
from balog.consumers.queueing.in_flight import Admission
from balog.event import Event
from balog.topics import Topics
from balog.topics.base import DEFAULT_LEASE, check_name

Unwanted = Literal["ack", "keep", "dead"]
"""What becomes of an event that no consumer of its topic wants."""


@dataclass(eq=False, repr=False)
class EngineSettings:
    """The arguments of :class:`~balog.consumers.Engine`, which describes them.

    Raises:
        ConfigError: a value out of its range.
    """

    hub: ConsumerHub
    topics: Topics
    consumer_operator: Operator | None = None
    group: str = "balog"
    _: KW_ONLY
    concurrency: int = 1
    pollers: int = 1
    batch: int = 100
    prefetch: int | None = None
    lease: float = DEFAULT_LEASE
    max_attempts: int = 5
    first_delay: float | None = None
    drain: float = 30.0
    ledger: Ledger | None = None
    hooks: Sequence[Hook] = ()
    default_event_handler: Callable[[Event], object] | None = None
    admission: Admission | None = None
    unwanted: Unwanted = "ack"

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

    @property
    def operator(self) -> Operator:
        """Resolves the topics' names and calls the handlers."""
        return self.consumer_operator if self.consumer_operator is not None else ConsumerOperator()

    def backoff(self, until_empty: bool) -> Backoff:
        """Return the backoff of consumers that declare none."""
        first = self.first_delay if self.first_delay is not None else 0.1 if until_empty else 1.0
        return Backoff(first, max(first, LONGEST_BACKOFF))
