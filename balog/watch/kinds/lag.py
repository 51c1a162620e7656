"""Lag: messages of a topic that a group has not handled."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from balog.event.payload import ExpectedBand
from balog.watch.config.monitors import LagLimits, MonitorConfig
from balog.watch.kinds.base import Evaluator, SeriesMemory, SeriesSample, Verdict
from balog.watch.observations import LagObserved


class LagState(Struct, SeriesMemory):
    """Nothing: the last value counts."""

    def judge(self, evaluator: LagEvaluator, value: int, now: float) -> Verdict:
        """Judge a number of messages."""
        over = evaluator.options.over
        words, expected = f"{value:,} messages are not handled", ExpectedBand(high=over)
        if value > over:
            return Verdict("bad", f"{words}, more than {over:,}.", value, expected)
        return Verdict("ok", f"{words}.", value, expected)


class LagEvaluator(Evaluator):
    """Judges the lag of one group."""

    wants = (LagObserved,)
    state_type = LagState

    def __init__(self, options: LagLimits, monitor: MonitorConfig) -> None:
        self.options = options

    def samples(self, observation: LagObserved) -> Iterator[SeriesSample]:
        """Yield the lag."""
        if (observation.topic, observation.group) == (self.options.topic, self.options.group):
            names = (("topic", observation.topic), ("group", observation.group))
            yield SeriesSample("", "", observation.lag, "", names)
