"""Lag: messages of a topic that a group has not handled, and events in the spool of a sink."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from balog.event.payload import ExpectedBand
from balog.watch.config.kind_config import LagLimits
from balog.watch.kinds.base import Nothing, SeriesSample, Verdict, WithoutClock
from balog.watch.observations import LagObserved, MetricObserved

SPOOL_METRIC = "sink_spooled"
"""The gauge that a broker or sidecar with ``metrics`` reports for each sink."""


class LagEvaluator(WithoutClock):
    """Judges the lag of one group, or the spools of the sinks that a glob names."""

    wants = (LagObserved, MetricObserved)
    state_type = Nothing

    def __init__(self, options: LagLimits) -> None:
        self.options = options

    def samples(self, observation: LagObserved | MetricObserved) -> Iterator[SeriesSample]:
        """Yield the lag, or the number of spooled events."""
        options = self.options
        if isinstance(observation, LagObserved):
            if (observation.topic, observation.group) == (options.topic, options.group):
                names = (("topic", observation.topic), ("group", observation.group))
                yield SeriesSample("", "", observation.lag, "", names)
        elif options.spool is not None and observation.name == SPOOL_METRIC:
            sink = observation.tags.get("sink", "")
            if fnmatchcase(sink, options.spool):
                labels = (("sink", sink),)
                yield SeriesSample(observation.pipeline, "", int(observation.value), observation.run, labels)

    def judge(self, state: Nothing, value: int, now: float) -> Verdict:
        """Judge a number of messages."""
        words = "events wait in the spool" if self.options.spool is not None else "messages are not handled"
        expected = ExpectedBand(high=self.options.over)
        if value > self.options.over:
            return Verdict("bad", f"{value:,} {words}, more than {self.options.over:,}.", value, expected)
        return Verdict("ok", f"{value:,} {words}.", value, expected)
