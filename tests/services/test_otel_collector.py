"""The otlp sink into a real OpenTelemetry Collector, by itself and at the end of a broker in a pipe."""

import pytest
from balog_otlp import OtlpSinkConfig

from balog.delivery.attempt import attempt
from balog.event import Event, encode
from balog.event.payload import MetricPayload, RunPayload, log_payload
from balog.sinks import Delivery, SinkError
from tests.services.servers.collector import MAX_BODY, running
from tests.stand_ins.http_server import Answer, HttpStandIn
from tests.stand_ins.otlp import OtlpReceiver, plain

pytestmark = [pytest.mark.service, pytest.mark.usefixtures("sink_packages")]

CONTEXT = {"application": "tap-stripe", "fqdn": "host", "process": 7, "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736"}


@pytest.fixture(scope="module")
def downstream():
    with HttpStandIn() as server:
        yield server


@pytest.fixture(scope="module")
def collector(tmp_path_factory, downstream):
    with running(tmp_path_factory.mktemp("collector"), downstream.url) as url:
        yield url


@pytest.fixture
def receiver(downstream):
    downstream.respond = receiver = OtlpReceiver()
    return receiver


@pytest.fixture
def sink(collector):
    sink = OtlpSinkConfig(url=collector).build()
    sink.open()
    yield sink
    sink.close()


def delivery(payload, level="INFO"):
    event = Event.new("tap.sync", payload, level=level, context=CONTEXT)
    return Delivery(event, encode(event))


def metric(kind, value):
    return delivery(MetricPayload(type=kind, metric=f"a_{kind}", value=value, tags={"stream": "users"}))


def test_the_collector_hands_on_what_it_was_told(receiver, sink):
    nested = {"cls_type": "x", "values": [1, 2.5, None, {"a": [True, "ü\0"]}], "big": 2**62, "deep": {}}
    for _ in range(40):
        nested["deep"] = {"deeper": nested["deep"]}
    batch = [
        delivery(log_payload("it broke", "ERROR", fields={"rows": 3}), "ERROR"),
        delivery(nested),
        *(metric("counter", n) for n in (1, 2)),
        metric("gauge", -4.5),
        *(metric("timer", seconds) for seconds in (0.25, 0.75, 2)),
        delivery(RunPayload(outcome="succeeded", duration=2.0, exit_code=0, command="tap")),
    ]
    sink.write(batch)
    (resource, broke), (_, other), (_, run) = receiver.records()
    assert resource == {"service.name": "tap-stripe", "host.name": "host", "process.pid": 7}
    assert (broke.body.string_value, broke.severity_number, plain(broke.attributes)["rows"]) == ("it broke", 17, 3)
    assert broke.trace_id.hex() == CONTEXT["trace_id"]
    body = plain(other.body.kvlist_value.values)
    assert {**body, "deep": None} == {**nested, "deep": None}
    assert plain(run.attributes)["run.outcome"] == "succeeded"
    series = receiver.series()
    counted = sum(point.as_double for point in series["a_counter"].sum.data_points)
    assert (counted, series["a_counter"].sum.is_monotonic) == (3, True)
    assert series["a_gauge"].gauge.data_points[-1].as_double == -4.5
    points = series["a_timer"].histogram.data_points
    buckets = [sum(counts) for counts in zip(*(point.bucket_counts for point in points))]
    bounds = [*points[0].explicit_bounds, None]
    assert [bound for bound, count in zip(bounds, buckets) for _ in range(count)] == [0.25, 1.0, 2.5]
    assert sum(point.sum for point in points) == 3.0
    assert series["run_duration"].unit == "s"


def test_a_probe_hands_on_nothing(receiver, sink):
    sink.probe()
    assert (receiver.logs, receiver.metrics) == ([], [])


def test_a_request_that_is_too_large_is_parted(receiver, sink):
    """Given more than the collector takes at once, then only the event that is too large by itself is lost."""
    noise = "".join(chr(0x4E00 + n % 20_000) for n in range(100_000))
    batch = [delivery({"text": noise}), delivery({"text": noise * 4}), delivery({"text": noise}), delivery({"n": 1})]
    plain_sink = OtlpSinkConfig(url=sink._config.url, compress=False).build()
    assert sum(len(body) for _, body in batch) > MAX_BODY
    outcome = attempt(plain_sink.write, batch)
    plain_sink.close()
    assert list(outcome.dead) == [1]
    assert outcome.left == []
    arrived = {plain(record.attributes)["log.record.uid"] for _, record in receiver.records()}
    assert arrived == {event.header.id for number, (event, _) in enumerate(batch) if number != 1}


@pytest.mark.parametrize(("status", "is_retryable"), [(503, True), (429, True), (400, False)])
def test_what_the_collector_cannot_hand_on_is_judged_by_its_answer(downstream, sink, status, is_retryable):
    downstream.respond = lambda request: Answer(status)
    with pytest.raises(SinkError) as caught:
        sink.write([delivery({"n": 1})])
    assert caught.value.retryable == is_retryable
    assert caught.value.remaining == [0]
