"""What each kind of monitor is made of: samples of series, and their verdicts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

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


class SeriesMemory:
    """What a series remembers, and its judgement; a struct that is stored. Each method gets its monitor's evaluator."""

    __slots__ = ()

    def judge(self, evaluator: Any, value: Any, now: float) -> Verdict | None:
        """Judge a value and learn from it; None if it changes nothing. ``now`` is in seconds, as all times."""
        raise NotImplementedError

    def deadline(self, evaluator: Any) -> float | None:
        """Return when ``tick`` is due; None for never."""
        return None

    def tick(self, evaluator: Any, now: float) -> Verdict | None:
        """Judge the series at its deadline, or at its start if it starts early."""
        return None


class Evaluator:
    """The limits of one monitor, and the values that are judged by them. Each series has a memory of its own.

    Attributes:
        wants: the types of observations that it judges.
        state_type: the type of a series' memory, which can be made without arguments.
        starts_early: whether the series of a pipeline without globs begin with the monitor, before any observation.
    """

    wants: tuple[type[Observation], ...]
    state_type: type[SeriesMemory]
    starts_early = False

    def samples(self, observation: Any) -> Iterator[SeriesSample]:
        """Yield the values of an observation by series."""
        raise NotImplementedError


def limit(value: float, low: float | None, high: float | None) -> str:
    """Return "over" or "under" for a value out of its limits, else ""."""
    if high is not None and value > high:
        return "over"
    return "under" if low is not None and value < low else ""
