"""What a sink is: a config that builds it, and an object that takes batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple, Protocol

from msgspec import Meta, Struct

from balog.backoff import Backoff
from balog.errors import SinkError
from balog.event import Event

__all__ = ["Batching", "Delivery", "Retrying", "Sink", "SinkConfig", "SinkError", "SinkOptions"]


class Delivery(NamedTuple):
    """An event on its way: the event, and its encoding as one line without a newline."""

    event: Event
    body: bytes


class Batching(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """When a batch is full: by events, by bytes, or by the age of its oldest event."""

    events: Annotated[int, Meta(ge=1, le=10_000, description="Events at most in a batch.")] = 1000
    bytes: Annotated[int, Meta(ge=1024, le=16 << 20, description="Bytes of encoded events, about.")] = 4 << 20
    age: Annotated[float, Meta(ge=0, le=3600, description="Seconds that the oldest event waits at most.")] = 0.05


class Retrying(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Exponential backoff with full jitter; a longer ``Retry-After`` of the other side is kept to."""

    first: Annotated[float, Meta(gt=0, le=3600, description="Seconds before the second try.")] = 0.1
    longest: Annotated[float, Meta(gt=0, le=3600, description="Seconds between tries at most.")] = 30.0

    def backoff(self) -> Backoff:
        """Return the delays between tries."""
        return Backoff(self.first, max(self.first, self.longest))


class SinkOptions(Struct, kw_only=True):
    """What every sink's config has; a sink's own struct inherits from this one."""

    where: Annotated[str, Meta(description="Takes only events for which this expression is true.")] | None = None
    batch: Batching = Batching()
    retry: Retrying = Retrying()

    def takes(self, event: Event) -> bool:
        """Return whether the sink sends anything of such an event. Others are not queued; they count as filtered."""
        return True


class Sink(Protocol):
    """Where events go. One thread calls it, one batch at a time.

    A sink whose ``open`` does not ask the other side has a method ``probe`` too, for ``balog check --connect``: it
    raises SinkError when the other side is not there or refuses who asks, and delivers nothing.
    """

    def open(self) -> None:
        """Connect; called at the start, and again before the first batch if it raised. It leaves nothing behind.

        Raises:
            SinkError: the other side is not there; retryable says whether to try again.
        """

    def write(self, batch: Sequence[Delivery]) -> None:
        """Deliver a batch; when it returns, every event of it is safe at the other side.

        Raises:
            SinkError: none or not all of it was taken; what was not comes again if the error is retryable.
        """

    def close(self) -> None:
        """Finish what is open. Called once, also after errors."""


class SinkConfig(Protocol):
    """The part of a broker's config that describes one sink; ``SinkOptions`` are part of it."""

    where: str | None
    batch: Batching
    retry: Retrying

    @property
    def name(self) -> str:
        """What the sink is called in messages to people: its type and where it goes, ``statsd localhost:8125``."""

    def build(self) -> Sink:
        """Make the sink, unopened.

        Raises:
            ConfigError: something that the struct's types can't say; ``path`` is the field. Secrets are revealed here.
        """
