"""What tests give to sinks: batches of deliveries, and payloads of any form."""

from typing import Any

import pytest
from hypothesis import strategies as st

from balog.event import Event, encode
from balog.event.payload import MetricPayload, log_payload
from balog.sinks import Delivery, Sink, SinkError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
METRICS = st.builds(
    MetricPayload,
    type=st.sampled_from(["counter", "timer", "gauge"]),
    metric=st.text(min_size=1),
    value=st.floats(min_value=0, allow_nan=False, allow_infinity=False),
    tags=st.dictionaries(st.text(), JSON, max_size=3),
)
_LOGS = st.builds(log_payload, st.text(), st.just("INFO"), fields=st.dictionaries(st.text(), JSON, max_size=3))
PAYLOADS = st.one_of(
    METRICS, _LOGS, st.dictionaries(st.sampled_from(["cls_type", "message"]) | st.text(), JSON, max_size=5)
)


def deliver(*events: Event) -> list[Delivery]:
    """Return events as a sink gets them."""
    return [Delivery(event, encode(event)) for event in events]


def metric(kind: str = "counter", name: str = "record_count", value: Any = 1, **tags: Any) -> Event:
    payload = {"cls_type": "metric", "type": kind, "metric": name, "value": value, "tags": tags}
    return Event.new("a.metric", payload)


def batch_of(*payloads: Any, channel: str = "a.b", **changes: Any) -> list[Delivery]:
    return deliver(*(Event.new(channel, payload, **changes) for payload in payloads))


def numbered(count: int, **changes: Any) -> list[Delivery]:
    return batch_of(*({"n": n} for n in range(count)), **changes)


def ids(batch: list[Delivery]) -> list[str]:
    return [event.header.id for event, _ in batch]


def refused(sink: Sink, batch: list[Delivery], says: str = "") -> SinkError:
    """Write a batch that a sink refuses, and return the error, which is one line with this text."""
    with pytest.raises(SinkError) as caught:
        sink.write(batch)
    assert "\n" not in str(caught.value)
    assert says in str(caught.value)
    return caught.value
