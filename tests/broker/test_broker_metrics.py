import time

from balog.broker.metrics import MetricsConfig, StatsReporter
from balog.broker.pipe_output import PipeStats
from balog.delivery.stats import SinkStats
from balog.event.payload import MetricPayload, read

STEPS = {"bytes": 1000, "lines": 10, "logs": 1, "read_wait_seconds": 0.25, "write_wait_seconds": 0.5}


def total(deliveries, metric):
    payloads = [read(delivery.event) for delivery in deliveries]
    assert all(isinstance(payload, MetricPayload) and payload.type == "counter" for payload in payloads)
    return round(sum(payload.value for payload in payloads if payload.metric == metric), 6)


def test_what_is_reported_adds_up_to_what_was_counted():
    """Given counts that grow while reports are made, then the deltas add up to the counts at the end."""
    stats, put = PipeStats(), []
    with StatsReporter(MetricsConfig(stage="first", every=0.1), stats.samples, put.append, print):
        for _ in range(40):
            for name, step in STEPS.items():
                setattr(stats, name, getattr(stats, name) + step)
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
    with StatsReporter(MetricsConfig(), PipeStats(bytes=7).samples, put.append, print):
        pass
    assert total(put, "pipe_bytes") == 7
    assert len(put) == 8


def test_numbers_that_did_not_change_are_sent_once_and_gauges_as_they_are():
    """Given a sink whose queue grows, then its gauge is sent as the level now, and its counters as deltas."""
    put, reports = [], iter([SinkStats(put=3, waiting=3), SinkStats(put=5, waiting=4), SinkStats(put=5, waiting=4)])
    with StatsReporter(MetricsConfig(every=0.1), lambda: next(reports, last).samples({"sink": "a"}), put.append, print):
        last = SinkStats(put=5, waiting=4)
        time.sleep(0.5)
    payloads = [delivery.event.payload for delivery in put]
    wanted = [one for one in payloads if one["metric"] in ("sink_put", "sink_waiting")]
    sent = [(one["metric"], one["type"], one["value"]) for one in wanted]
    assert sent == [
        ("sink_put", "counter", 3),
        ("sink_waiting", "gauge", 3),
        ("sink_put", "counter", 2),
        ("sink_waiting", "gauge", 4),
    ]
    assert all(one["tags"] == {"stage": "broker", "sink": "a"} for one in payloads)
    assert [one["metric"] for one in payloads].count("sink_lost") == 1
