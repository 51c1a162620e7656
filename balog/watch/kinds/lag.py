"""Lag: messages of a topic that a group has not handled, and events in the spool of a sink."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from msgspec import Struct

from balog.event.payload import ExpectedBand
from balog.watch.config.monitors import LagLimits, MonitorConfig
from balog.watch.kinds.base import Evaluator, SeriesMemory, SeriesSample, Verdict
from balog.watch.observations import LagObserved, MetricObserved

SPOOL_METRIC = "sink_spooled"
"""The gauge that a broker or sidecar with ``metrics`` reports for each sink."""


class LagState(Struct, SeriesMemory):
    """Nothing: the last value counts."""

    def judge(self, evaluator: LagEvaluator, value: int, now: float) -> Verdict:
        """Judge a number of messages."""
        options = evaluator.options
        words = "events wait in the spool" if options.spool is not None else "messages are not handled"
        expected = ExpectedBand(high=options.over)
        if value > options.over:
            return Verdict("bad", f"{value:,} {words}, more than {options.over:,}.", value, expected)
        return Verdict("ok", f"{value:,} {words}.", value, expected)


class LagEvaluator(Evaluator):
    """Judges the lag of one group, or the spools of the sinks that a glob names."""

    wants = (LagObserved, MetricObserved)
    state_type = LagState

    def __init__(self, options: LagLimits, monitor: MonitorConfig) -> None:
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
