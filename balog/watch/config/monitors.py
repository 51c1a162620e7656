"""Monitors as structs, with defaults, and the options of each kind."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, Struct, field

from balog.watch.config.durations import DurationText, FactorText, ShareText

Season = Literal["none", "hour_of_day", "day_of_week", "hour_of_week"]
Seasonality = Literal["auto", "none", "hour_of_day", "day_of_week", "hour_of_week", "day_of_month"]

_MinRuns = Annotated[int, Meta(ge=1, le=1000, description="Runs before it is judged; learning until then.")]

_Count = Annotated[int, Meta(ge=0)]
_Row = Annotated[int, Meta(ge=1, le=1000)]
_Runs = Annotated[int, Meta(ge=2, le=10000)]
_Name = Annotated[str, Meta(min_length=1, max_length=300)]


class Freshness(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Fires when no run has succeeded for ``every`` and ``grace``: a dead man's switch."""

    every: Annotated[DurationText, Meta(description="Time between two successes.")]
    grace: Annotated[DurationText, Meta(description="Time that a success may be late.")] = "0s"
    calendar: Annotated[
        str | None, Meta(description="Hours in which the clock runs, such as Mon-Fri 06:00-22:00 Europe/Berlin.")
    ] = None


class VolumeBand(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Fires when the records of a stream's run leave the band of its history."""

    sensitivity: Annotated[float, Meta(ge=0.5, le=100, description="Half the band in robust standard deviations.")] = (
        4.0
    )
    tolerance: Annotated[ShareText, Meta(description="Least half of the band, as a share of the expected value.")] = (
        "35%"
    )
    seasonality: Annotated[Seasonality, Meta(description="Which runs of the history are comparable.")] = "auto"


class DurationLimits(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Fires when a run takes longer than a limit, or than a factor of the 95th percentile of its history.

    A run whose start is known fires at the limit, also if it never ends.
    """

    p95_over: Annotated[FactorText | None, Meta(description="Factor of the history's 95th percentile.")] = None
    against: Annotated[DurationText, Meta(description="Age of the oldest run in the history.")] = "7d"
    min_runs: _MinRuns = 5
    over: Annotated[DurationText | None, Meta(description="Longest time of a run.")] = None
    under: Annotated[DurationText | None, Meta(description="Shortest time of a run.")] = None


class FailureLimits(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Fires at failed runs in a row, an error with a new fingerprint, or too many failed runs."""

    in_a_row: Annotated[
        _Row | None, Meta(description="Failed runs in a row at which it fires; the next success resolves it.")
    ] = None
    new_fingerprint: Annotated[bool, Meta(description="Fire at an error that is not in the history.")] = False
    rate_over: Annotated[ShareText | None, Meta(description="Largest share of failed runs.")] = None
    within: Annotated[DurationText, Meta(description="Time of the runs for the share.")] = "1d"
    min_runs: _MinRuns = 5


class QuarantineLimits(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Fires when a run rejects too many records or lines."""

    share_over: Annotated[ShareText | None, Meta(description="Largest share of rejected records in a run.")] = None
    over: Annotated[_Count | None, Meta(description="Largest number of rejected records in a run.")] = None


class SchemaChanges(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Fires when the SCHEMA of a stream changes; resolves with the next run that has the same SCHEMA."""

    breaking: Annotated[
        Literal["info", "warning", "error", "critical", "ignore"],
        Meta(description="Severity of a change that readers of the old schema cannot read, or of another key."),
    ] = "error"
    additive: Annotated[
        Literal["info", "warning", "error", "critical", "ignore"], Meta(description="Severity of any other change.")
    ] = "info"


class LagLimits(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Fires when a consumer group has too many messages left in a topic."""

    topic: Annotated[_Name, Meta(description="Topic.")]
    group: Annotated[_Name, Meta(description="Consumer group of the topic.")]
    over: Annotated[int, Meta(ge=0, description="Largest number of messages.")]


class StateProgress(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Fires when a bookmark does not advance although runs succeed."""

    unchanged_runs: Annotated[_Runs, Meta(description="Runs in a row with the same bookmark.")]


class Threshold(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Fires when the value of a metric is over or under a limit."""

    over: Annotated[float | None, Meta(description="Largest value.")] = None
    under: Annotated[float | None, Meta(description="Smallest value.")] = None
    within: Annotated[DurationText, Meta(description="Time of the values that are aggregated.")] = "5m"


Severity = Literal["info", "warning", "error", "critical"]

Patterns = str | list[str]

_Text = Annotated[str, Meta(min_length=1, max_length=16384)]


class MonitorConfig(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """One monitor: which events it watches, exactly one kind, and when it fires."""

    name: Annotated[
        str, Meta(min_length=1, max_length=200, description="Unique name, part of the key of each of its alerts.")
    ]
    pipeline: Annotated[Patterns, Meta(description="Globs of pipelines, such as tap-*. Default: all.")] = "*"
    stream: Annotated[Patterns, Meta(description="Globs of streams. Default: all.")] = "*"
    where: Annotated[str | None, Meta(description="A condition on the events, in the filter language.")] = None
    severity: Annotated[Severity, Meta(description="Severity of its alerts.")] = "error"
    pending: Annotated[
        DurationText, Meta(description="Time for which it must be bad before it fires; pending meanwhile.")
    ] = field(default="0s", name="for")
    resolve_after: Annotated[DurationText, Meta(description="Time for which it must be good before it resolves.")] = (
        "0s"
    )
    no_data: Annotated[
        DurationText | None, Meta(description="Time without events after which its state is no_data. Default: never.")
    ] = None
    quiet_hours: Annotated[
        str | None,
        Meta(description="Hours in which a new alert is silenced, such as 22:00-06:00 Europe/Berlin. Default: none."),
    ] = None
    timezone: Annotated[str, Meta(description="Time zone of its seasons, such as Europe/Berlin.")] = "UTC"
    link: Annotated[
        _Text | None, Meta(description="URL for people; {pipeline}, {stream} and {run_id} are replaced.")
    ] = None
    labels: Annotated[dict[str, str], Meta(description="Labels for each of its alerts.", max_length=50)] = {}
    freshness: Freshness | None = None
    volume: VolumeBand | None = None
    duration: DurationLimits | None = None
    failures: FailureLimits | None = None
    quarantine: QuarantineLimits | None = None
    schema: SchemaChanges | None = None
    lag: LagLimits | None = None
    state: StateProgress | None = None
    metric: Annotated[_Text | None, Meta(description="Glob of a metric's name.")] = None
    threshold: Threshold | None = None

    @property
    def kind(self) -> str:
        """The name of its kind, such as ``freshness``."""
        return next(name for name in KINDS if getattr(self, name) is not None)


KINDS = ("freshness", "volume", "duration", "failures", "quarantine", "schema", "lag", "state", "metric")
"""The fields of a monitor of which it has exactly one."""

MAX_MONITORS = 2000


class MonitorsFile(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """``{"monitors": [{"name": "late", "freshness": {"every": "1h"}}]}``."""

    examples: ClassVar = (
        {
            "monitors": [
                {
                    "name": "late",
                    "pipeline": "tap-*",
                    "freshness": {"every": "24h", "grace": "1h", "calendar": "Mon-Fri 06:00-22:00 Europe/Berlin"},
                    "quiet_hours": "22:00-06:00 Europe/Berlin",
                    "link": "https://runs.example.com/{run_id}",
                    "labels": {"team": "data"},
                },
                {"name": "rows", "stream": "orders", "volume": {"seasonality": "day_of_week"}, "no_data": "2d"},
            ]
        },
        {
            "monitors": [
                {"name": "sync-fails", "failures": {"in_a_row": 1}},
                {"name": "slow", "duration": {"p95_over": "2x", "over": "2h", "under": "10s"}},
                {
                    "name": "errors",
                    "where": "context.env = 'prod'",
                    "failures": {"new_fingerprint": True, "rate_over": "20%"},
                },
                {"name": "rejected", "quarantine": {"share_over": "1%", "over": 50}},
                {"name": "columns", "schema": {"breaking": "critical"}},
            ]
        },
        {
            "monitors": [
                {"name": "behind", "lag": {"topic": "singer-events", "group": "billing", "over": 10000}},
                {"name": "spool", "metric": "sink_spooled", "threshold": {"over": 10000}},
                {"name": "stuck", "state": {"unchanged_runs": 5}},
                {"name": "queue", "metric": "queue_*", "threshold": {"over": 1000, "under": 1}},
            ]
        },
    )

    monitors: Annotated[list[MonitorConfig], Meta(max_length=MAX_MONITORS, description="The monitors.")]
