import time

from balog.broker.metrics import BrokerMetrics, MetricsConfig
from balog.payload import MetricPayload, read

STEPS = {"bytes": 1000, "lines": 10, "logs": 1, "read_wait": 0.25, "write_wait": 0.5}
NOTHING = dict.fromkeys(STEPS, 0)


def total(deliveries, metric):
    payloads = [read(delivery.event) for delivery in deliveries]
    assert all(isinstance(payload, MetricPayload) and payload.type == "counter" for payload in payloads)
    return round(sum(payload.value for payload in payloads if payload.metric == metric), 6)


def test_what_is_reported_adds_up_to_what_was_counted():
    """Given counts that grow while reports are made, then the deltas add up to the counts at the end."""
    stats, put = {**NOTHING}, []
    with BrokerMetrics(MetricsConfig(stage="first", every=0.1), stats.copy, put.append):
        for _ in range(40):
            for name, step in STEPS.items():
                stats[name] += step
            time.sleep(0.01)
    assert total(put, "pipe_bytes") == 40_000
    assert total(put, "pipe_lines") == 400
    assert total(put, "pipe_logs") == 40
    assert total(put, "pipe_read_wait_seconds") == 10
    assert total(put, "pipe_write_wait_seconds") == 20
    assert len(put) >= 10, "more than the report at the end"
    for delivery in put:
        assert delivery.event.header.channel == "first.metric"
        assert delivery.event.payload["tags"] == {"stage": "first"}


def test_a_short_run_is_reported_at_its_end():
    put = []
    with BrokerMetrics(MetricsConfig(), lambda: {**NOTHING, "bytes": 7}, put.append):
        pass
    assert total(put, "pipe_bytes") == 7
    assert len(put) == 5
