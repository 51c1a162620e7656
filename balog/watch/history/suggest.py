"""Suggest monitors from history: for each, the tightest limits that would have sent few alerts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timezone
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, Struct, field

from balog.event import Event
from balog.event.payload import RunPayload
from balog.watch.config.monitors import MonitorConfig
from balog.watch.history.backtest import Backtest, run_backtest
from balog.watch.observations import RunObserved, SchemaObserved, StateObserved, observe

MAX_PIPELINES = 50
"""Pipelines that get monitors of their own: those with the most runs."""

MAX_EVENTS = 2_000_000
"""Events that are kept in memory."""

MIN_RUNS = 5

TYPES = ("run", "stream_schema", "state")
"""The payload types to read, with the errors of all types."""

_DAY = 86400.0
_STEPS = (60, 300, 600, 900, 1800, 3600, 2 * 3600, 3 * 3600, 4 * 3600, 6 * 3600, 8 * 3600, 12 * 3600, 86400, 2 * 86400,
          3 * 86400, 7 * 86400, 14 * 86400, 30 * 86400)  # fmt: skip


class Suggestion(NamedTuple):
    """A monitor, and what a backtest says of it."""

    fields: dict[str, Any]
    firings: int
    per_week: float
    is_within: bool


class _Draft(NamedTuple):
    """A monitor whose limits are open: the choices, the tightest first."""

    fields: dict[str, Any]
    choices: list[dict[str, Any]]


class _Pipeline(Struct):
    times: list[float] = field(default_factory=list)
    has_counts: bool = False
    is_rejecting: bool = False

    def add(self, report: RunPayload, when: float) -> None:
        self.is_rejecting |= bool(report.invalid_lines is not UNSET and report.invalid_lines)
        self.is_rejecting |= any(count.quarantined is not UNSET and bool(count.quarantined) for count in report.streams)
        if report.outcome == "succeeded":
            self.times.append(when)
            self.has_counts |= bool(report.streams) or bool(report.records)


def suggest(events: Sequence[Event], since: float, until: float, per_week: float) -> list[Suggestion]:
    """Return monitors for the pipelines of events.

    Args:
        events: in the order of their times, at most ``MAX_EVENTS``.
        since, until: their time, in seconds since the epoch.
        per_week: the alerts a week that a monitor may send.
    """
    drafts = list(_drafts(events))
    tried = [
        msgspec.convert({**draft.fields, **choice, "name": f"{number}/{rung}"}, MonitorConfig)
        for number, draft in enumerate(drafts)
        for rung, choice in enumerate(draft.choices)
    ]
    result = run_backtest(tried, events, since, until)
    return [_choose(number, draft, result, per_week) for number, draft in enumerate(drafts)]


def _choose(number: int, draft: _Draft, result: Backtest, per_week: float) -> Suggestion:
    """Return the first choice that keeps to the number of alerts."""
    histories = {history.name: history for history in result.monitors}
    rungs = [histories[f"{number}/{rung}"] for rung in range(len(draft.choices))]
    within = [rung for rung, history in enumerate(rungs) if history.per_week <= per_week]
    if within:
        best = within[0]
    else:
        best = min(range(len(rungs)), key=lambda rung: rungs[rung].firings)
    chosen = rungs[best]
    return Suggestion({**draft.fields, **draft.choices[best]}, chosen.firings, chosen.per_week, bool(within))


def _drafts(events: Iterable[Event]) -> Iterator[_Draft]:
    pipelines: defaultdict[str, _Pipeline] = defaultdict(_Pipeline)
    seen: Counter[type] = Counter()
    for event in events:
        for observation in observe(event):
            seen[type(observation)] += 1
            if isinstance(observation, RunObserved) and observation.pipeline and observation.report:
                pipelines[observation.pipeline].add(observation.report, observation.time)
    busiest = sorted(pipelines, key=lambda name: (-len(pipelines[name].times), name))[:MAX_PIPELINES]
    for name in sorted(busiest):
        if len(pipelines[name].times) >= MIN_RUNS:
            yield from _of_pipeline(name, pipelines[name])
    if seen[RunObserved]:
        rows = [{"failures": {"in_a_row": count}} for count in (1, 2, 3, 5, 10)]
        yield _Draft({"name": "sync-fails"}, rows)
        yield _Draft({"name": "new-errors", "severity": "warning"}, [{"failures": {"new_fingerprint": True}}])
    if any(pipeline.is_rejecting for pipeline in pipelines.values()):
        shares = [{"quarantine": {"share_over": share}} for share in ("0.1%", "1%", "5%", "10%", "25%")]
        yield _Draft({"name": "records-are-rejected"}, shares)
    if seen[SchemaObserved]:
        yield _Draft({"name": "schema-moved"}, [{"schema": {"breaking": "error", "additive": "info"}}])
    if seen[StateObserved]:
        runs = [{"state": {"unchanged_runs": count}} for count in (3, 5, 10, 30, 100)]
        yield _Draft({"name": "bookmark-stands-still"}, runs)


def _of_pipeline(name: str, pipeline: _Pipeline) -> Iterator[_Draft]:
    times = pipeline.times
    gaps = [later - earlier for earlier, later in pairwise(times)]
    lasted = times[-1] - times[0]
    every = _step(median(gaps) * 0.98)
    days = {datetime.fromtimestamp(when, timezone.utc).weekday() for when in times}
    calendar = {"calendar": "Mon-Fri"} if lasted >= 21 * _DAY and not days & {5, 6} else {}
    graces = [every // 4, every // 2, every, 3 * every, 8 * every]
    common = {"pipeline": _literal(name)}
    late = [{"freshness": {"every": _text(every), "grace": _text(grace), **calendar}} for grace in graces]
    yield _Draft({"name": f"{name}-arrives", **common}, late)
    if pipeline.has_counts:
        bands = [{"volume": {"sensitivity": sensitivity}} for sensitivity in (3.5, 4.5, 6.0, 9.0)]
        yield _Draft({"name": f"{name}-rows", **common}, bands)
    against = "7d" if every <= _DAY / 4 else "28d"
    slow = [{"duration": {"p95_over": factor, "against": against}} for factor in ("1.5x", "2x", "3x", "5x", "10x")]
    yield _Draft({"name": f"{name}-slow", "severity": "warning", **common}, slow)


def _step(seconds: float) -> int:
    return next((step for step in _STEPS if step >= seconds), _STEPS[-1])


def _text(seconds: int) -> str:
    unit, size = next(
        (unit, size) for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)) if seconds % size == 0
    )
    return f"{seconds // size}{unit}"


def _literal(name: str) -> str:
    """Return the glob of a name."""
    return "".join(f"[{char}]" if char in "*?[" else char for char in name)


def write_monitors(suggestions: Sequence[Suggestion], since: float, until: float) -> str:
    """Return a file of monitors as YAML, with the expected number of alerts of each in a comment."""
    first, last = (datetime.fromtimestamp(when, timezone.utc) for when in (since, until))
    lines = [
        f"# Suggested from the events from {first:%Y-%m-%d %H:%M}Z to {last:%Y-%m-%d %H:%M}Z.",
        "# The numbers of alerts are those of a backtest over this time.",
        "monitors:" if suggestions else "monitors: []",
    ]
    for monitor in suggestions:
        count = f"{monitor.firings:,} alert{'s' * (monitor.firings != 1)}, {monitor.per_week:.2f} a week"
        lines.append(f"  # {count}{'' if monitor.is_within else ': more than wanted; look at them before you use it'}")
        for number, (name, value) in enumerate(monitor.fields.items()):
            lines.append(f"  {' ' if number else '-'} {name}: {_yaml(value)}")
    return "\n".join(lines) + "\n"


def _yaml(value: Any) -> str:
    """Return a value in YAML's flow style; ``${`` begins no variable."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {_yaml(inner)}" for name, inner in value.items()) + "}"
    return msgspec.json.encode(value).decode().replace("${", "$${")
