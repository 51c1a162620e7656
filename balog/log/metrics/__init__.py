"""Counters, timers and gauges as ``metric`` events; a tap swaps ``from singer import metrics`` for this module.

The value of a counter's event is what was added since the one before: a delta. A timer's is in seconds, a gauge's is
the level now. The channel is ``<application>.metric`` unless one is given; the level is INFO.
"""

from __future__ import annotations

import logging
import os
import threading
import weakref
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from balog.log.guard import guarded
from balog.log.logger import EventLogger
from balog.log.metrics.meters import DEFAULT_LOG_INTERVAL, Counter, Gauge, Meter, Timer, flush
from balog.log.metrics.points import Metric, Point, Status, Tag, as_dict, folded, write
from balog.log.values.json_values import safe_str, type_name
from balog.log_lines.dialects import read_line

__all__ = [
    "DEFAULT_LOG_INTERVAL",
    "Counter",
    "Gauge",
    "Metric",
    "Point",
    "Status",
    "Tag",
    "Timer",
    "counter",
    "flush",
    "folded",
    "gauge",
    "http_request_timer",
    "job_timer",
    "log",
    "parse",
    "record_counter",
    "timer",
]

_shared: weakref.WeakValueDictionary[tuple[Any, ...], Any] = weakref.WeakValueDictionary()
_sharing = threading.Lock()
_AnyMeter = TypeVar("_AnyMeter", bound=Meter)


def _begin() -> None:
    global _sharing
    _sharing = threading.Lock()


os.register_at_fork(after_in_child=_begin)


def _share(key: tuple[Any, ...], make: Callable[[], _AnyMeter]) -> _AnyMeter:
    try:
        with _sharing:
            meter: _AnyMeter | None = _shared.get(key)
            if meter is None:
                meter = _shared[key] = make()
                meter.share()
        return meter
    except Exception:  # an invalid name or channel, which the written event reports
        return make()


def _frozen(tags: Mapping[str, Any] | None) -> tuple[Any, ...]:
    """Return tags as a key; values of different types are different tags."""
    return tuple(sorted((safe_str(key), type_name(tag), safe_str(tag)) for key, tag in as_dict(tags).items()))


def counter(
    name: str,
    tags: Mapping[str, Any] | None = None,
    log_interval: float = DEFAULT_LOG_INTERVAL,
    *,
    channel: str | None = None,
) -> Counter:
    """Return the counter of that name, tags and channel: the same one as long as it is in use or holds a count.

    So ``counter("pages", {"site": site}).increment()`` in a loop writes one event an interval for each site. Its tags
    cannot be changed. See ``Counter``.
    """
    key = (Counter, name, _frozen(tags), log_interval, channel)
    return _share(key, lambda: Counter(name, tags, log_interval, channel=channel))


def gauge(name: str, tags: Mapping[str, Any] | None = None, *, channel: str | None = None) -> Gauge:
    """Return the gauge of that name, tags and channel: the same one as long as it is in use. See ``Gauge``."""
    return _share((Gauge, name, _frozen(tags), channel), lambda: Gauge(name, tags, channel=channel))


def timer(name: str, tags: Mapping[str, Any] | None = None, *, channel: str | None = None) -> Timer:
    """Return a new timer. See ``Timer``."""
    return Timer(name, tags, channel=channel)


def record_counter(endpoint: str | None = None, log_interval: float = DEFAULT_LOG_INTERVAL) -> Counter:
    """Return a counter of the records that were read from a source."""
    return Counter(Metric.record_count, _tagged(Tag.endpoint, endpoint), log_interval)


def http_request_timer(endpoint: str | None) -> Timer:
    """Return a timer of a request to an endpoint."""
    return Timer(Metric.http_request_duration, _tagged(Tag.endpoint, endpoint))


def job_timer(job_type: str | None = None) -> Timer:
    """Return a timer of a job that a source runs for the tap."""
    return Timer(Metric.job_duration, _tagged(Tag.job_type, job_type))


def _tagged(name: str, value: Any) -> dict[str, Any] | None:
    return None if value is None or (type(value) is str and not value) else {name: value}


@guarded()
def log(logger: Any, point: Any) -> None:
    """Write a point, this module's or singer-python's, on the channel ``<logger's name>.metric``.

    Args:
        logger: balog's, whose bound context the event gets, or the standard library's; None for the default channel.
    """
    own = Point(point.metric_type, point.metric, point.value, point.tags)
    if isinstance(logger, EventLogger):
        write(own, logger._logger.under("metric"), logger._context)
    elif isinstance(logger, logging.Logger) and logger is not logging.getLogger():
        write(own, f"{logger.name}.metric")
    else:
        write(own)


@guarded()
def parse(line: str) -> Point | None:
    """Read the point in a line of a log, in any dialect that taps print; None if there is none."""
    log_line = read_line(line.rstrip("\r\n"))
    if log_line is None:
        return None
    metric = log_line.metric
    if metric is None and log_line.event is not None and log_line.event.cls_type == "metric":
        metric = log_line.event.payload
    if metric is None:
        return None
    return Point(metric.get("type", ""), metric.get("metric", ""), metric.get("value"), metric.get("tags") or {})
