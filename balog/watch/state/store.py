"""The state of a watcher in a store: series, silences, the clock, handled events and alerts to send."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

HANDLED_SECONDS = 86400.0
"""Seconds for which the ids of handled events are kept: a message that was not acknowledged comes again."""

MAX_HANDLED = 500_000


class StoredState(NamedTuple):
    """A watcher's state: the clock in seconds since the epoch, silences until a time, and the series.

    ``reached`` has the number of the last alert that each target has.
    """

    clock: float
    silences: dict[str, float]
    reached: dict[str, int]
    series: list[bytes]


def encode_facts(clock: float, silences: Mapping[str, float]) -> dict[str, bytes]:
    """Return the clock and the silences as bytes by name."""
    return {"clock": msgspec.msgpack.encode(clock), "silences": msgspec.msgpack.encode(dict(silences))}


def decode_facts(facts: Mapping[str, bytes]) -> tuple[float, dict[str, float], dict[str, int]]:
    """Return the clock, the silences and what targets have; 0 and none before the first commit."""
    clock = msgspec.msgpack.decode(facts["clock"], type=float) if "clock" in facts else 0.0
    silences = msgspec.msgpack.decode(facts["silences"], type=dict[str, float]) if "silences" in facts else {}
    reached = msgspec.msgpack.decode(facts["reached"], type=dict[str, int]) if "reached" in facts else {}
    return clock, silences, reached
