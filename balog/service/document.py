"""The control document: the streams, filters, tables and callbacks of a service, versioned as one document."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta, Struct

from balog.common.http import CaFile, Timeout, Url
from balog.common.secrets import Secret
from balog.sinks.base import Batching, Retrying
from balog.sinks.http_sink import Headers

Name = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}$",
        description="1 to 100 letters, digits, '.', '_' or '-', no dot in front.",
    ),
]
_Sources = Annotated[tuple[Name, ...], Meta(min_length=1, max_length=100, description="The topics that it reads.")]
_Key = Annotated[str, Meta(min_length=1, description="An expression: events with the same value keep their order.")]
_Select = Annotated[dict[str, str], Meta(min_length=1, description="The new payload: an expression for each field.")]
_Where = Annotated[str, Meta(min_length=1, description="Only events for which this expression is true.")]


class EventStream(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Routes events to a topic. An event goes to the first stream that matches it.

    An event without a matching stream goes to the topic named after its ``cls_type``, so new types need no config.
    """

    name: Name
    types: Annotated[
        tuple[str, ...], Meta(min_length=1, description="cls_type of the matching events; globs with * and ?.")
    ] = ("*",)
    where: _Where | None = None
    topic: Annotated[Name, Meta(description="The topic; the stream's name if omitted.")] | None = None
    key: _Key | None = None
    rate: Annotated[float, Meta(gt=0, description="Events per second at most; 429 above it.")] | None = None


class Filter(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Derives a topic from others: merges them, selects events, and optionally changes their payloads."""

    name: Name
    sources: _Sources
    to: Annotated[Name, Meta(description="The topic that it writes.")]
    where: _Where | None = None
    select: _Select | None = None
    cls_type: Annotated[str, Meta(min_length=1, description="cls_type of the new payload; with select.")] | None = None
    version: Annotated[str, Meta(min_length=1, description="Its version; with select.")] | None = None
    engine: Annotated[
        Literal["service", "spark"],
        Meta(description="What runs it: the service, or `balog filter --config` with Spark."),
    ] = "service"


class _Tables(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True, tag_field="type"):
    name: Name
    sources: _Sources


class LoadedTable(_Tables, tag="load", frozen=True, kw_only=True):
    """Tables that ``balog load`` writes from topics, with Spark: Hive layout, Delta."""

    to: Annotated[
        str,
        Meta(min_length=1, description="The argument of `balog load --tables`: a folder, hive:…, delta:…."),
    ]


class ClickHouseTable(_Tables, tag="clickhouse", frozen=True, kw_only=True):
    """Tables in ClickHouse, one for each type, written by the service; needs the package ``balog-clickhouse``."""

    where: _Where | None = None
    url: Url
    database: Name = "default"
    user: Annotated[str, Meta(min_length=1, description="The user who signs in.")] = "default"
    password: Secret | None = None
    ca_file: CaFile | None = None
    timeout: Timeout = 10.0
    batch: Batching = Batching(events=10_000, age=1.0)
    retry: Retrying = Retrying()


class YTsaurusTable(_Tables, tag="ytsaurus", frozen=True, kw_only=True):
    """Tables in YTsaurus, one for each type, written by the service; needs the package ``balog-ytsaurus``."""

    examples: ClassVar = (
        {
            "type": "ytsaurus",
            "name": "lake",
            "sources": ["orders"],
            "where": "level >= 'INFO'",
            "proxy": "hahn.example.com",
            "path": "//home/shop/events",
            "token": {"env": "YT_TOKEN"},
        },
    )

    where: _Where | None = None
    proxy: Annotated[str, Meta(min_length=1, description="The cluster's proxy.")]
    path: Annotated[str, Meta(min_length=1, pattern="^//", description="The folder of the tables, //home/…")]
    token: Secret
    batch: Batching = Batching(events=10_000, age=1.0)
    retry: Retrying = Retrying()


AnyTable = LoadedTable | ClickHouseTable | YTsaurusTable


class Callback(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Posts the events of a topic to an endpoint, as Standard Webhooks."""

    name: Name
    source: Annotated[Name, Meta(description="The topic that it reads.")]
    url: Url | Secret
    where: _Where | None = None
    secrets: Annotated[
        tuple[Secret, ...],
        Meta(max_length=5, description="Signing keys, the newest first; each request is signed with all."),
    ] = ()
    headers: Headers = msgspec.field(default_factory=dict)
    concurrency: Annotated[
        int, Meta(ge=1, le=64, description="Concurrent requests; 1 keeps the topic's order, except for retries.")
    ] = 4
    retry: Retrying = Retrying(first=5.0, longest=3600.0)
    give_up: Annotated[
        float, Meta(gt=0, le=30 * 86_400, description="Seconds after its arrival until an event becomes a dead letter.")
    ] = 3 * 86_400.0
    timeout: Timeout = 15.0
    ca_file: CaFile | None = None
    private: Annotated[bool, Meta(description="Allow addresses of private networks and of this machine.")] = False


class ControlDocument(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """The control document of a service. The empty document is valid: each type has a topic of its own."""

    examples: ClassVar = (
        {
            "streams": [
                {
                    "name": "orders",
                    "types": ["order.*"],
                    "topic": "orders",
                    "key": "payload.order_id",
                    "rate": 500,
                    "where": "payload.amount > 0",
                }
            ],
            "filters": [
                {
                    "name": "large",
                    "sources": ["orders"],
                    "to": "large-orders",
                    "where": "payload.amount > 1000",
                    "select": {"id": "payload.order_id"},
                    "cls_type": "large_order",
                    "version": "1.0.0",
                }
            ],
        },
        {
            "tables": [
                {
                    "type": "clickhouse",
                    "name": "orders",
                    "sources": ["orders"],
                    "url": "http://localhost:8123",
                    "database": "shop",
                    "password": {"env": "CLICKHOUSE_PASSWORD"},
                    "where": "level >= 'INFO'",
                },
                {"type": "load", "name": "lake", "sources": ["orders"], "to": "delta:/lake/orders"},
            ]
        },
        {
            "callbacks": [
                {
                    "name": "crm",
                    "source": "orders",
                    "url": "https://crm.example.com/orders",
                    "where": "payload.amount > 0",
                    "secrets": [{"env": "HOOK_KEY"}],
                    "headers": {"X-Source": "balog"},
                }
            ]
        },
    )

    streams: Annotated[
        tuple[EventStream, ...], Meta(description="Topics for some types of events; the others have one each.")
    ] = ()
    filters: Annotated[tuple[Filter, ...], Meta(description="New events, made of those that meet a condition.")] = ()
    tables: Annotated[tuple[AnyTable, ...], Meta(description="Databases that the service writes events to.")] = ()
    callbacks: Annotated[
        tuple[Callback, ...], Meta(description="URLs that the service sends events to, with their conditions.")
    ] = ()
