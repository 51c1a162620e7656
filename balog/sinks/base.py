"""The interface of a sink: a config that builds it, and an object that takes batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple, Protocol

from msgspec import Meta, Struct

from balog.backoff import Backoff
from balog.errors import SinkError
from balog.event import Event

__all__ = ["Batching", "Delivery", "Retrying", "Sink", "SinkConfig", "SinkError", "SinkOptions"]


class Delivery(NamedTuple):
    """An event, and its encoding as one line without a newline."""

    event: Event
    body: bytes


class Batching(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """When a batch is full: by events, by bytes, or by the age of its oldest event."""

    events: Annotated[int, Meta(ge=1, le=10_000, description="Events at most in a batch.")] = 1000
    bytes: Annotated[int, Meta(ge=1024, le=16 << 20, description="Bytes of encoded events, about.")] = 4 << 20
    age: Annotated[float, Meta(ge=0, le=3600, description="Seconds that the oldest event waits at most.")] = 0.05


class Retrying(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Exponential backoff with full jitter; a longer ``Retry-After`` of the server is respected."""

    first: Annotated[float, Meta(gt=0, le=3600, description="Seconds before the second try.")] = 0.1
    longest: Annotated[float, Meta(gt=0, le=3600, description="Seconds between tries at most.")] = 30.0

    def backoff(self) -> Backoff:
        """Return the delays between attempts."""
        return Backoff(self.first, max(self.first, self.longest))


class SinkOptions(Struct, kw_only=True):
    """The options of all sinks; each sink's config inherits from this struct."""

    where: Annotated[str, Meta(description="Takes only events for which this expression is true.")] | None = None
    batch: Batching = Batching()
    retry: Retrying = Retrying()

    def takes(self, event: Event) -> bool:
        """Return whether the sink sends anything of an event. Other events count as filtered and are not queued."""
        return True


class Sink(Protocol):
    """A destination of events. One thread calls it, with one batch at a time.

    A sink whose ``open`` does not connect also has a method ``probe`` for ``balog check --connect``. It delivers
    nothing and raises SinkError if the server can't be reached or refuses the credentials.
    """

    def open(self) -> None:
        """Connect. Called at the start, and again if it raised; a failed call must leave nothing open.

        Raises:
            SinkError: the server can't be reached; ``retryable`` says whether to try again.
        """

    def write(self, batch: Sequence[Delivery]) -> None:
        """Deliver a batch. When this returns, the server has all events.

        Raises:
            SinkError: some events were not taken; they come again if the error is retryable.
        """

    def close(self) -> None:
        """Finish open requests and release resources. Called once, also after errors."""


class SinkConfig(Protocol):
    """The config of one sink; it includes the fields of ``SinkOptions``."""

    where: str | None
    batch: Batching
    retry: Retrying

    @property
    def name(self) -> str:
        """The sink's name in messages: its type and destination, such as ``statsd localhost:8125``."""

    def build(self) -> Sink:
        """Return the sink, unopened. Secrets are read here.

        Raises:
            ConfigError: a value is invalid in a way that the struct's types can't express; ``path`` is the field.
        """
