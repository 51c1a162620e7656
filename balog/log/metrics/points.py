"""One measurement, and its ``metric`` event for any value and tags."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from balog.event import LEVELS
from balog.event.log_payload import log_payload
from balog.log.configuration import state
from balog.log.guard import guarded
from balog.log.logger import emit
from balog.log.values.json_values import clean_text, safe_str

if TYPE_CHECKING:
    from balog.common.cardinality import Cardinality

_MAX_TAG = 1000
_LARGEST_INT = 2**63


class Status:
    """The values of a timer's tag ``status``."""

    succeeded = "succeeded"
    failed = "failed"


class Metric:
    """Names of metrics that taps share."""

    record_count = "record_count"
    job_duration = "job_duration"
    http_request_duration = "http_request_duration"


class Tag:
    """Names of tags that taps share."""

    endpoint = "endpoint"
    job_type = "job_type"
    http_status_code = "http_status_code"
    status = "status"


class Point(NamedTuple):
    """One measurement; ``metric_type`` is ``counter``, ``timer`` or ``gauge``."""

    metric_type: str
    metric: str
    value: Any
    tags: Mapping[str, Any]


@guarded()
def write(point: Point, channel: str | None = None, context: Mapping[str, Any] | None = None) -> None:
    """Write a point as an event of level INFO. Never raises, unless configured ``strict``.

    A value that is no finite number makes a ``log`` of level WARNING instead, with the point in its fields: a sum
    over metrics must not meet it.

    Args:
        channel: ``<application>.metric`` when None.
        context: keys beside those that are filled in by themselves.
    """
    recorder = state.current()
    if recorder.threshold > LEVELS["WARNING"]:
        return
    if channel is None or (type(channel) is str and not channel):
        channel = f"{recorder.process_context.get()[0]['application']}.metric"
    name, value = _text(point.metric) or "unnamed", number(point.value)
    tags = json_tags(point.tags)
    if value is None:
        shown = safe_str(point.value, repr)[:_MAX_TAG]
        fields = {"type": point.metric_type, "metric": name, "value": shown, "tags": tags}
        payload = log_payload(
            f"metric {name} = {shown}", "WARNING", fields=fields, problem="its value is no finite number"
        )
        emit("WARNING", channel, payload, context=context)
        return
    payload = {
        "cls_type": "metric",
        "version": "1.0.0",
        "type": point.metric_type,
        "metric": name,
        "value": value,
        "tags": capped(name, tags),
    }
    emit("INFO", channel, payload, context=context)


def number(value: Any) -> int | float | None:
    """Return a finite number for JSON; None for anything else, including text."""
    try:
        if isinstance(value, (str, bytes, bytearray)):
            return None
        if type(value) is not float:
            try:
                whole = operator.index(value)
            except TypeError:
                value = float(value)
            else:
                return whole if -_LARGEST_INT <= whole < _LARGEST_INT else float(whole)
        return value if math.isfinite(value) else None
    except Exception:  # not a number, or too large for a float
        return None


def json_tags(tags: Mapping[Any, Any] | None) -> dict[str, Any]:
    """Return tags for JSON: values without a JSON form as text, and texts cut at 1000 characters."""
    return {_text(key): _tag(tag) for key, tag in as_dict(tags).items()}


def as_dict(tags: Any) -> dict[Any, Any]:
    """Return a copy of tags; a value that is not a mapping becomes one tag, ``tags``."""
    try:
        return dict(tags) if tags is not None else {}
    except Exception:
        return {"tags": safe_str(tags, repr)}


def _tag(value: Any) -> Any:
    if isinstance(value, Enum):
        value = value.value
    if value is None or type(value) in (bool, int) or (type(value) is float and math.isfinite(value)):
        return value
    if isinstance(value, (dict, list, tuple)):
        try:
            return msgspec.json.decode(msgspec.json.encode(value))
        except Exception:
            return _text(safe_str(value, repr))
    return _text(value)


def _text(value: Any) -> str:
    if isinstance(value, Enum):
        value = value.value
    text = clean_text(safe_str(value))
    return text if len(text) <= _MAX_TAG else text[:_MAX_TAG] + "…"


MAX_TAG_SETS = 1000
"""Sets of tags that one metric may have before further ones are folded."""

_cardinality: Cardinality | None = None


def capped(metric: str, tags: dict[str, Any]) -> dict[str, Any]:
    """Fold the tags of a metric that has too many sets of them; see ``balog.common.cardinality.Cardinality``."""
    global _cardinality
    if not tags:
        return tags
    if _cardinality is None:
        from balog.common.cardinality import Cardinality

        _cardinality = Cardinality(MAX_TAG_SETS)
    return dict(_cardinality.admit(metric, tags))


def folded() -> dict[str, int]:
    """Return the number of values with a replaced tag, by metric with too many sets of tags."""
    return {} if _cardinality is None else _cardinality.folded
