"""What a broker's config file may say. ``schemas/config/broker.json`` is made from these structs."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from balog.broker.batches.config import BatchConfig
from balog.broker.metrics import MetricsConfig
from balog.broker.quarantine import QuarantineConfig
from balog.broker.records.config import RecordRule, SchemaRule
from balog.broker.state import StateConfig
from balog.outbound.spool import SpoolConfig
from balog.sinks import AnySinkConfig


class BrokerConfig(Struct, forbid_unknown_fields=True, kw_only=True):
    """``{"sinks": [], "strip": false}`` passes everything through; each sink gets every event."""

    sinks: list[AnySinkConfig]
    strip: Annotated[bool, Meta(description="Keep LOG messages from what stands behind the broker.")] = False
    drain: Annotated[
        float, Meta(ge=0, le=3600, description="Seconds that the sinks have at the end to take what is queued.")
    ] = 10.0
    metrics: MetricsConfig | None = None
    spool: SpoolConfig | None = None
    records: Annotated[list[RecordRule], Meta(description="What happens to records, one after the other.")] = []
    schemas: Annotated[list[SchemaRule], Meta(description="What is added to the schemas of streams.")] = []
    batch: BatchConfig | None = None
    state: StateConfig | None = None
    quarantine: QuarantineConfig | None = None
