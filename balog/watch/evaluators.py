"""From a monitor's config to what evaluates it: its evaluator, its times and the events that it selects."""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import translate
from typing import Any

from balog.event import Event
from balog.filters import Expression
from balog.watch.config.calendars import Calendar
from balog.watch.config.durations import parse_duration
from balog.watch.config.monitors import MonitorConfig, Patterns
from balog.watch.kinds.base import Evaluator
from balog.watch.kinds.duration import DurationEvaluator
from balog.watch.kinds.failures import FailureEvaluator
from balog.watch.kinds.freshness import FreshnessEvaluator
from balog.watch.kinds.lag import LagEvaluator
from balog.watch.kinds.metric import MetricEvaluator
from balog.watch.kinds.quarantine import QuarantineEvaluator
from balog.watch.kinds.schema import SchemaEvaluator
from balog.watch.kinds.state import StateEvaluator
from balog.watch.kinds.volume import VolumeEvaluator
from balog.watch.state_machine import Timing

_EVALUATORS: dict[str, Callable[[Any, MonitorConfig], Evaluator]] = {
    "freshness": FreshnessEvaluator,
    "volume": VolumeEvaluator,
    "duration": DurationEvaluator,
    "failures": FailureEvaluator,
    "quarantine": QuarantineEvaluator,
    "schema": SchemaEvaluator,
    "lag": LagEvaluator,
    "state": StateEvaluator,
    "metric": MetricEvaluator,
}
"""What judges each kind of monitors, made of the options of the kind and the whole monitor."""


class CompiledMonitor:
    """A monitor, ready to evaluate.

    Args:
        config: a monitor without problems; see ``find_semantic_problems``.

    Attributes:
        no_data: seconds without observations after which a series has no data; None for never.
        quiet_hours: hours in which a new alert is silenced; None for none.
        pipelines: the pipelines that are named without a glob.
    """

    def __init__(self, config: MonitorConfig) -> None:
        self.config = config
        self.evaluator = _EVALUATORS[config.kind](getattr(config, config.kind), config)
        self.timing = Timing(parse_duration(config.pending), parse_duration(config.resolve_after))
        self.no_data = None if config.no_data is None else parse_duration(config.no_data)
        self.quiet_hours = None if config.quiet_hours is None else Calendar(config.quiet_hours)
        self.pipelines = [name for name in _listed(config.pipeline) if not set("*?[") & set(name)]
        self._pipelines, self._streams = _compiled(config.pipeline), _compiled(config.stream)
        self._where = None if config.where is None else Expression(config.where)

    def selects(self, pipeline: str, event: Event | None) -> bool:
        """Return whether the monitor judges observations of a pipeline, and of the event that they come from."""
        if not self._pipelines.match(pipeline):
            return False
        return self._where is None or (event is not None and self._where.matches(event))

    def selects_stream(self, stream: str) -> bool:
        """Return whether the monitor judges a stream; "" is a series of no stream, which only ``*`` matches."""
        return self._streams.match(stream) is not None


def _compiled(patterns: Patterns) -> re.Pattern[str]:
    """Return an expression that names match if they match one of some globs."""
    return re.compile("|".join(map(translate, _listed(patterns))))


def _listed(patterns: Patterns) -> list[str]:
    return [patterns] if isinstance(patterns, str) else list(patterns)
