"""Monitors as structs, with defaults."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, Struct, field

from balog.watch.config.durations import DurationText
from balog.watch.config.kind_config import (
    DurationLimits,
    FailureLimits,
    Freshness,
    LagLimits,
    QuarantineLimits,
    SchemaChanges,
    StateProgress,
    Threshold,
    VolumeBand,
)

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
                {"name": "spool", "lag": {"spool": "elastic *", "over": 10000}},
                {"name": "stuck", "state": {"unchanged_runs": 5, "unchanged_for": "3d"}},
                {"name": "queue", "metric": "queue_*", "threshold": {"over": 1000, "under": 1}},
            ]
        },
    )

    monitors: Annotated[list[MonitorConfig], Meta(max_length=MAX_MONITORS, description="The monitors.")]
