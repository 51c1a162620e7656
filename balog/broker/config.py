"""The configs of a broker and of a sidecar; the schemas ``config/broker.json`` and ``run.json`` are made from them."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta, Struct

from balog.broker.batches.config import BatchConfig
from balog.broker.metrics import MetricsConfig, RunMetricsConfig
from balog.broker.quarantine import QuarantineConfig
from balog.broker.records.config import RecordRule
from balog.broker.state import StateConfig
from balog.delivery.spool import SpoolConfig
from balog.log_lines.dialects import load_dialects
from balog.log_lines.patterns import LogPattern, Pattern, compile_patterns
from balog.sinks import AnySinkConfig

_Name = Annotated[str, Meta(min_length=1, max_length=200)]


class RunConfig(Struct, forbid_unknown_fields=True, kw_only=True):
    """``{"sinks": [{"type": "statsd"}]}`` leaves the command's stdout untouched and sends its logs to sinks.

    With ``in_band``, ``count``, ``state``, ``schemas`` or a ``quarantine``, the stream passes through the
    sidecar.
    """

    examples: ClassVar = (
        {
            "sinks": [{"type": "store", "path": "archive", "topic": "singer-events"}],
            "count": True,
            "spool": {"path": "spool"},
            "metrics": {"every": 60},
            "quarantine": {"path": "invalid.jsonl"},
        },
        {
            "log_patterns": [
                {
                    "format": "{time} [{level}] {message}",
                    "time_format": "%d.%m.%Y %H:%M:%S",
                    "levels": {"FATAL": "CRITICAL"},
                }
            ]
        },
    )

    sinks: Annotated[list[AnySinkConfig], Meta(description="Where the events go.")] = []
    spool: SpoolConfig | None = None
    in_band: Annotated[
        bool, Meta(description="Put the events into the stream too, as LOG messages between its lines.")
    ] = False
    count: Annotated[bool, Meta(description="Count records and bytes by stream for the run's report.")] = False
    state: Annotated[
        bool, Meta(description="Put the last STATE, up to 64 KiB and without secrets, into the run's report.")
    ] = False
    schemas: Annotated[
        bool, Meta(description="Make an event stream_schema of each SCHEMA, up to 256 KiB, that a run begins to use.")
    ] = False
    started: Annotated[
        bool, Meta(description="Make an event run_started when the command starts, for monitors of runs that hang.")
    ] = False
    quarantine: Annotated[
        QuarantineConfig | None,
        Meta(description="Where lines on stdout go that are not Singer messages; else they pass."),
    ] = None
    metrics: RunMetricsConfig | None = None
    log_patterns: Annotated[
        list[LogPattern],
        Meta(description="Lines of the command's stderr that balog does not know by itself.", max_length=20),
    ] = []
    dialects: Annotated[
        list[str],
        Meta(
            description="Dialects of the command's stderr that installed packages add, by name.",
            max_length=20,
            examples=[["glog"]],
        ),
    ] = []

    @property
    def looks(self) -> bool:
        """Whether the stream passes through the sidecar; else the command writes directly to the target."""
        return self.in_band or self.count or self.state or self.schemas or self.quarantine is not None

    def patterns(self) -> list[Pattern]:
        """Return the compiled ``log_patterns``, then the ``dialects`` of installed packages.

        Raises:
            ConfigError: a format is invalid, or a dialect is not installed.
            BalogError: a dialect cannot be imported.
        """
        return compile_patterns(self.log_patterns, "$.log_patterns") + load_dialects(self.dialects, "$.dialects")


class BrokerConfig(Struct, forbid_unknown_fields=True, kw_only=True):
    """``{"sinks": [], "strip": false}`` passes everything through; each sink gets every event."""

    examples: ClassVar = (
        {"sinks": [{"type": "statsd"}], "strip": True, "spool": {"path": "spool"}, "pipeline": "shop-to-csv"},
        {
            "sinks": [],
            "records": [{"stream": "orders", "filter": "amount > 0", "mask": {"email": {"how": "redact"}}}],
            "quarantine": {"path": "quarantine.jsonl"},
        },
        {"sinks": [], "batch": {"to": "records"}, "state": {"store": "state.json"}, "metrics": {"every": 60}},
    )

    sinks: Annotated[list[AnySinkConfig], Meta(description="Where the events go. Each sink gets every event.")]
    strip: Annotated[bool, Meta(description="Remove LOG messages from the stream.")] = False
    drain: Annotated[
        float, Meta(ge=0, le=3600, description="Seconds that the sinks have at the end for the queued events.")
    ] = 10.0
    metrics: MetricsConfig | None = None
    spool: SpoolConfig | None = None
    records: Annotated[list[RecordRule], Meta(description="Rules for records, applied one after the other.")] = []
    batch: BatchConfig | None = None
    state: StateConfig | None = None
    quarantine: QuarantineConfig | None = None
    pipeline: Annotated[_Name | None, Meta(description="Name of the pipeline in the broker's own events.")] = None
