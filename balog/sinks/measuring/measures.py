"""Measurements in events, for the metric sinks: counters, timers and gauges, with a limited number of tags.

As in Singer metrics, a counter's value is a delta, a timer's is in seconds, and a gauge's is the current level.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from balog.common.cardinality import Cardinality
from balog.common.errors import EventError, complain
from balog.event import Event
from balog.event.facility import FACILITY_VERSION
from balog.event.payload import MetricPayload, MetricsPayload, RunPayload, read
from balog.sinks.base import Delivery, SinkOptions

Kind = Literal["counter", "timer", "gauge"]

_MAX_TAG = 200  # characters; Datadog's limit, the smallest of the supported systems
_TYPES = frozenset({"metric", "metrics", "run"})
_DROPPED = "pid"  # a tag of singer-python, another one in each run
_Name = Annotated[str, Meta(min_length=1, max_length=200)]


class Measure(NamedTuple):
    """One measurement: a delta (counter), seconds (timer) or a level (gauge), always finite."""

    kind: Kind
    name: str
    value: float
    tags: dict[str, str]
    timestamp: datetime


def measures(event: Event) -> list[Measure]:
    """Return the measurements of an event; empty for events of other types.

    - ``metric``: one measurement.
    - ``metrics``: a gauge per value.
    - ``run``: the timer ``run_duration`` and the counter ``runs`` with the tag ``outcome``; the gauge ``run_succeeded``
      (1 or 0); the counters ``run_records`` and ``run_record_bytes`` with the tag ``stream``. If they were measured,
      also the counters ``run_output_bytes`` and ``run_junk_lines``, the timer ``run_cpu`` with the tag ``mode`` (user
      or system), and the gauge ``run_peak_memory_bytes``.

    Raises:
        EventError: the payload does not match its ``cls_type``, or a timer is below zero.
    """
    if event.cls_type not in _TYPES:
        return []
    payload, when = read(event), event.header.timestamp
    if isinstance(payload, MetricPayload):
        if payload.type == "timer" and payload.value < 0:
            raise EventError(f"a timer cannot be {payload.value:g} seconds", "$.payload.value")
        return [Measure(payload.type, payload.metric, payload.value, text_tags(payload.tags), when)]
    if isinstance(payload, MetricsPayload):
        return [Measure("gauge", item.name or "unnamed", item.value, {}, when) for item in payload.values]
    return _of_run(payload, when) if isinstance(payload, RunPayload) else []


def _of_run(run: RunPayload, when: datetime) -> list[Measure]:
    outcome: dict[str, str] = {"outcome": run.outcome}
    run_measures = [
        Measure("timer", "run_duration", run.duration, outcome, when),
        Measure("counter", "runs", 1.0, outcome, when),
        Measure("gauge", "run_succeeded", float(run.outcome == "succeeded"), {}, when),
    ]

    def add(kind: Kind, name: str, value: float | UnsetType, tags: dict[str, str]) -> None:
        if value is not UNSET:
            run_measures.append(Measure(kind, name, float(value), tags, when))

    for stream in run.streams:
        add("counter", "run_records", stream.records, {"stream": stream.stream})
        add("counter", "run_record_bytes", stream.bytes, {"stream": stream.stream})
    if run.records and not run.streams:
        add("counter", "run_records", run.records, {})
    add("counter", "run_output_bytes", run.bytes, {})
    add("counter", "run_junk_lines", run.invalid_lines, {})
    add("timer", "run_cpu", run.cpu_user, {"mode": "user"})
    add("timer", "run_cpu", run.cpu_system, {"mode": "system"})
    add("gauge", "run_peak_memory_bytes", run.peak_memory, {})
    return run_measures


def is_measure(event: Event) -> bool:
    """Return whether an event is of a type that carries measurements."""
    return event.cls_type in _TYPES


def text_tags(tags: Mapping[str, Any]) -> dict[str, str]:
    """Return tags as strings of at most 200 characters.

    The members of an object become tags of their own (``context.account``), for the partition context of the Meltano
    SDK. Null, empty and more deeply nested values are left out.
    """
    texts: dict[str, str] = {}
    for key, value in tags.items():
        if isinstance(value, dict):
            flat = {f"{key}.{name}": item for name, item in value.items() if not isinstance(item, (dict, list))}
            texts.update(text_tags(flat))
        elif (text := _text(value)) and key:
            texts[key[:_MAX_TAG]] = text[:_MAX_TAG]
    return texts


def _text(value: Any) -> str:
    if value is None or value == []:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


class MeasureOptions(SinkOptions, kw_only=True):
    """The options of all metric sinks; each sink's config inherits from this struct."""

    prefix: Annotated[
        str, Meta(max_length=100, description="Comes before every metric's name, with a dot.", examples=["taps"])
    ] = ""
    tags: Annotated[
        dict[_Name, str], Meta(max_length=50, description="Tags that every metric gets.", examples=[{"env": "prod"}])
    ] = msgspec.field(default_factory=dict)
    max_series: Annotated[
        int,
        Meta(ge=1, le=100_000, description="Sets of tags of one metric; further ones share one, __other__."),
    ] = 1000

    def takes(self, event: Event) -> bool:
        """Return whether the sink sends anything of an event; see ``SinkOptions``."""
        return is_measure(event)


class _Header(Struct):
    timestamp: datetime


class _Point(Struct):
    """A metric with undecoded tags, since most of them are known already; the other fields may be anything."""

    cls_type: Any = None
    type: Any = None
    metric: Any = None
    value: Any = None
    tags: Raw = Raw(b"{}")


class _Line(Struct):
    """An event as far as a metric of a known series needs it."""

    schema: str
    header: _Header
    payload: _Point


_line = msgspec.json.Decoder(_Line)
_Series = tuple[Kind, str, bytes]
_MAX_KEY = 2000  # characters and bytes of a name and tags that are remembered
_MAX_KNOWN = 10_000


class Measured(NamedTuple):
    """The measurements of a batch with their events' indexes, and the reasons for rejected events by index."""

    measures: list[tuple[int, Measure]]
    rejected: dict[int, str]


class MeasureReader:
    """Reads the measurements of batches and applies a sink's options to them.

    When a metric has more than ``max_series`` sets of tags, the tag with the most values becomes ``__other__`` (see
    ``Cardinality``). This is reported on stderr once per metric.

    Args:
        options: the sink's config.
        name: the sink's name, for that report.
        only_tags: the events' tags that are kept; None for all.
    """

    def __init__(self, options: MeasureOptions, name: str, only_tags: Sequence[str] | None = None) -> None:
        self._constant = {key: value for key, value in options.tags.items() if value}
        self._only = None if only_tags is None else frozenset(only_tags)
        self._prefix = f"{options.prefix}." if options.prefix else ""
        self._cap = Cardinality(options.max_series)
        self._name = name
        self._reported: set[str] = set()
        self._known: dict[_Series, tuple[str, dict[str, str]]] = {}

    def read(self, batch: Sequence[Delivery]) -> Measured:
        """Return the measurements of a batch, in its order, with the sink's prefix and tags.

        Measurements of a known series usually share one object as ``tags``.
        """
        measured = Measured([], {})
        for index, delivery in enumerate(batch):
            key, known = self._read_series(delivery.body)
            if known is not None:
                measured.measures.append((index, known))
                continue
            try:
                for measure in measures(delivery.event):
                    shaped, is_folded = self._apply_options(measure)
                    measured.measures.append((index, shaped))
                    if key is not None and not is_folded and len(key[1]) + len(key[2]) <= _MAX_KEY:
                        if len(self._known) >= _MAX_KNOWN:
                            self._known.clear()
                        self._known[key] = (shaped.name, shaped.tags)
            except EventError as error:
                measured.rejected[index] = str(error)
        return measured

    def _read_series(self, body: bytes) -> tuple[_Series | None, Measure | None]:
        """Return a metric's series, and its measurement if that is known; None where ``measures`` must read it."""
        if b'"metric"' not in body:
            return None, None
        try:
            line = _line.decode(body)
            point, when = line.payload, line.header.timestamp
            if point.cls_type != "metric" or line.schema != FACILITY_VERSION or when.tzinfo is not timezone.utc:
                return None, None
            key = (point.type, point.metric, bytes(point.tags))
            known, value = self._known.get(key), float(point.value)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError, TypeError, ValueError, OverflowError):
            return None, None  # reported by ``measures``, if it has measurements
        if known is None or type(point.value) not in (int, float) or (value < 0 and key[0] == "timer"):
            return key, None
        return key, Measure(key[0], known[0], value, known[1], when)

    def _apply_options(self, measure: Measure) -> tuple[Measure, bool]:
        """Return a measurement with the sink's prefix and tags, and whether a tag was replaced by ``__other__``."""
        tags = measure.tags
        if self._only is not None:
            tags = {key: value for key, value in tags.items() if key in self._only}
        elif _DROPPED in tags:
            tags = {key: value for key, value in tags.items() if key != _DROPPED}
        name = self._prefix + measure.name
        capped = self._cap.admit(name, tags)
        is_folded = capped is not tags
        if is_folded and name not in self._reported and len(self._reported) < 100:
            self._reported.add(name)
            complain(f"{self._name}: the metric {name} has too many sets of tags; more of them become __other__")
        return measure._replace(name=name, tags={**capped, **self._constant}), is_folded
