"""What each kind of monitor is made of: samples of series, and their verdicts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from msgspec import Struct

from balog.event.payload import ExpectedBand
from balog.watch.observations import Observation
from balog.watch.state_machine import Signal


class Verdict(NamedTuple):
    """The judgement of a series at a time.

    Attributes:
        reason: one sentence for people.
        severity: replaces the monitor's.
        is_repeated: report it also while the series fires already.
    """

    signal: Signal
    reason: str = ""
    value: float | str | None = None
    expected: ExpectedBand | None = None
    severity: str | None = None
    is_repeated: bool = False


class SeriesSample(NamedTuple):
    """A value for one series, which its labels identify."""

    pipeline: str
    stream: str
    value: Any
    run: str = ""
    labels: tuple[tuple[str, str], ...] = ()


class Evaluator(Protocol):
    """Judges the series of one monitor. It keeps no state itself: the state of a series is a struct."""

    @property
    def wants(self) -> tuple[type[Observation], ...]:
        """The types of observations that it judges."""

    @property
    def state_type(self) -> type[Struct]:
        """The struct of a series' state, which can be made without arguments."""

    @property
    def starts_early(self) -> bool:
        """Whether the series of a pipeline without globs begin with the monitor, before any observation."""

    def samples(self, observation: Any) -> Iterator[SeriesSample]:
        """Yield the values of an observation by series."""

    def judge(self, state: Any, value: Any, now: float) -> Verdict | None:
        """Judge a value and learn from it; None if it changes nothing. ``now`` is in seconds, as all times."""

    def deadline(self, state: Any) -> float | None:
        """Return when ``tick`` is due; None for never."""

    def tick(self, state: Any, now: float) -> Verdict | None:
        """Judge a series at its deadline, or at its start if it starts early."""


class Nothing(Struct):
    """The state of a series without a memory."""


class WithoutClock:
    """The part of an evaluator that judges values only."""

    starts_early = False

    def deadline(self, state: Any) -> float | None:
        """Return None: nothing is due without a value."""
        return None

    def tick(self, state: Any, now: float) -> Verdict | None:
        """Return None."""
        return None


def limit(value: float, low: float | None, high: float | None) -> str:
    """Return "over" or "under" for a value out of its limits, else ""."""
    if high is not None and value > high:
        return "over"
    return "under" if low is not None and value < low else ""
