"""The state of a watcher in a store: series, silences, the clock, handled events and alerts to send."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

HANDLED_SECONDS = 86400.0
"""Seconds for which the ids of handled events are kept: a message that was not acknowledged comes again."""

MAX_HANDLED = 500_000


class StoredState(NamedTuple):
    """A watcher's state: the clock in seconds since the epoch, silences until a time, and the series."""

    clock: float
    silences: dict[str, float]
    series: list[bytes]


class WatchStore(Protocol):
    """Where a watcher keeps its state. Any thread may call its methods.

    Raises:
        TopicError: from every method: the store is damaged or out of reach, or another watcher has taken it over.
    """

    def load(self) -> StoredState:
        """Return the state; clock 0 and nothing else before the first commit."""

    def handled(self, ids: Sequence[str]) -> set[str]:
        """Return the ids that are known to be handled."""

    def commit(
        self,
        clock: float,
        silences: Mapping[str, float],
        series: Mapping[str, bytes | None],
        handled: Iterable[str],
        alerts: Sequence[bytes],
    ) -> None:
        """Write changes in one transaction.

        Args:
            series: the changed series by key; None for a removed one.
            handled: the ids of the events that led to the changes.
            alerts: events to send, which are ``unsent`` until ``sent`` is called.
        """

    def unsent(self, after: int = 0) -> list[tuple[int, bytes]]:
        """Return the alerts that are not yet sent, with their numbers, oldest first."""

    def sent(self, number: int) -> None:
        """Forget the alerts up to a number: every target has them."""

    def close(self) -> None:
        """Close files and connections."""


def encode_facts(clock: float, silences: Mapping[str, float]) -> dict[str, bytes]:
    """Return the clock and the silences as bytes by name."""
    return {"clock": msgspec.msgpack.encode(clock), "silences": msgspec.msgpack.encode(dict(silences))}


def decode_facts(facts: Mapping[str, bytes]) -> tuple[float, dict[str, float]]:
    """Return the clock and the silences; 0 and none before the first commit."""
    clock = msgspec.msgpack.decode(facts["clock"], type=float) if "clock" in facts else 0.0
    silences = msgspec.msgpack.decode(facts["silences"], type=dict[str, float]) if "silences" in facts else {}
    return clock, silences
