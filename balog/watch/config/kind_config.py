"""The options of each kind of monitor."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

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
    """Fires when a consumer group has too many messages left in a topic, or a sink too many events in its spool."""

    topic: Annotated[_Name | None, Meta(description="Topic.")] = None
    group: Annotated[_Name | None, Meta(description="Consumer group of the topic.")] = None
    spool: Annotated[_Name | None, Meta(description="Glob of a sink's name, for its spool.")] = None
    over: Annotated[int, Meta(ge=0, description="Largest number of messages or events.")]


class StateProgress(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Fires when a bookmark does not advance although runs succeed."""

    unchanged_runs: Annotated[_Runs | None, Meta(description="Runs in a row with the same bookmark.")] = None
    unchanged_for: Annotated[DurationText | None, Meta(description="Time with the same bookmark.")] = None


class Threshold(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Fires when the value of a metric is over or under a limit."""

    over: Annotated[float | None, Meta(description="Largest value.")] = None
    under: Annotated[float | None, Meta(description="Smallest value.")] = None
    within: Annotated[DurationText, Meta(description="Time of the values that are aggregated.")] = "5m"
