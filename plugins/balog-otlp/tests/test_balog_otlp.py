"""The sink otlp: its contract, and requests that opentelemetry-proto parses."""

from datetime import datetime, timedelta, timezone

import msgspec
import pytest
from balog_otlp import OtlpSinkConfig
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from balog.common.errors import ConfigError
from balog.common.secrets import Secret
from balog.delivery import Dispatcher
from balog.delivery.attempt import attempt
from balog.event import Event, encode
from balog.event.payload import (
    ExceptionInfo,
    Frame,
    MetricPayload,
    MetricsPayload,
    MetricValue,
    RunPayload,
    StreamCount,
    log_payload,
)
from balog.sinks import Batching, Delivery, SinkError
from balog.testing.contracts import SinkContract
from balog.testing.contracts.sinks import SECRET, SECRET_NAME
from balog.watch.alerts.alert_events import acknowledgement
from tests.contracts.sink_peers import HttpPeer
from tests.stand_ins.alerts import alert_life
from tests.stand_ins.batches import JSON, PAYLOADS
from tests.stand_ins.http_server import Answer, HttpStandIn
from tests.stand_ins.otlp import OtlpReceiver, plain

NOON = datetime(2026, 11, 20, 12, 0, 0, 250_000, tzinfo=timezone.utc)
NOON_NS = 1_795_176_000_250_000_000
CONTEXT = {"application": "tap-stripe", "application_version": "1.2", "fqdn": "host", "process": 42, "run_id": "R"}


@pytest.fixture
def receiver():
    return OtlpReceiver()


@pytest.fixture
def server(receiver):
    with HttpStandIn(receiver) as server:
        yield server


def build(server, **options):
    sink = OtlpSinkConfig(url=server.url, **options).build()
    sink.open()
    return sink


def delivery(payload, *, channel="tap.sync", level="INFO", context=CONTEXT, timestamp=NOON):
    event = Event.new(channel, payload, level=level, context=context, timestamp=timestamp)
    return Delivery(event, encode(event))


def log(message="hello", **options):
    return delivery(log_payload(message, options.get("level", "INFO")), **options)


def metric(kind, value, *, name="rows", tags=None, after=0.0, **options):
    payload = MetricPayload(type=kind, metric=name, value=value, tags=tags or {})
    return delivery(payload, timestamp=NOON + timedelta(seconds=after), **options)


class OtlpPeer(HttpPeer):
    """Events without measures, so each is a log record; a request with one that is refused is refused whole."""

    def __init__(self, root):
        super().__init__(root)
        self.config = OtlpSinkConfig(url=self.server.url, headers={"X-Token": Secret(env=SECRET_NAME)})
        self.receiver = OtlpReceiver()

    def respond(self, request):
        assert request.headers["X-Token"] == SECRET
        if any(identifier.encode() in request.body for identifier in self.refused):
            return Answer(400)
        return self.receiver(request)

    def expected(self, batch):
        return {event.header.id: event.payload for event, _ in batch}

    def arrived(self):
        records = [record for _, record in self.receiver.records()]
        payloads = {
            plain(record.attributes)["log.record.uid"]: plain(record.body.kvlist_value.values) for record in records
        }
        assert len(payloads) == len(records), "an event was sent twice"
        return payloads


class TestContract(SinkContract):
    refuses = True
    has_secret = True

    @pytest.fixture
    def peer(self, tmp_path):
        peer = OtlpPeer(tmp_path)
        yield peer
        peer.close()


def test_an_alert_is_a_log_record_with_its_severity(receiver, server):
    silenced = acknowledgement("m1", None, "on it", "ana")
    build(server).write([*alert_life(1), Delivery(silenced, encode(silenced))])
    records = [record for _, record in receiver.records()]
    assert len(records) == len(alert_life(1)) + 1
    assert records[0].severity_text == "ERROR"
    assert plain(records[0].body.kvlist_value.values)["reason"] == "No success for 1 h."


def test_a_log_is_a_record_of_its_application(receiver, server):
    batch = [log(level="WARNING")]
    build(server).write(batch)
    ((resource, record),) = receiver.records()
    assert resource == {"service.name": "tap-stripe", "service.version": "1.2", "host.name": "host", "process.pid": 42}
    assert record.body.string_value == "hello"
    assert (record.severity_number, record.severity_text) == (13, "WARNING")
    assert record.time_unix_nano == NOON_NS
    assert plain(record.attributes) == {
        "run_id": "R",
        "log.record.uid": batch[0].event.header.id,
        "balog.channel": "tap.sync",
        "balog.cls_type": "log",
    }


@pytest.mark.parametrize(
    ("level", "number"), [("DEBUG", 5), ("INFO", 9), ("WARNING", 13), ("ERROR", 17), ("CRITICAL", 21)]
)
def test_levels_are_severities(receiver, server, level, number):
    build(server).write([log(level=level)])
    ((_, record),) = receiver.records()
    assert record.severity_number == number


def test_an_event_without_a_level_has_no_severity(receiver, server):
    event = Event.new("a.b", {"n": 1})
    event.schema, event.header.level = "0.0.1", msgspec.UNSET
    build(server).write([Delivery(event, encode(event))])
    ((resource, record),) = receiver.records()
    assert record.severity_number == 0
    assert resource == {"service.name": "unknown_service"}


def test_a_span_links_the_record_to_its_trace(receiver, server):
    ids = {"trace_id": "4BF92F3577B34DA6A3CE929D0E0E4736", "span_id": "00f067aa0ba902b7"}
    build(server).write([log(context=ids), log(context={"trace_id": "0" * 32, "span_id": "xyz"})])
    (_, linked), (_, other) = receiver.records()
    assert linked.trace_id.hex() == "4bf92f3577b34da6a3ce929d0e0e4736"
    assert linked.span_id.hex() == "00f067aa0ba902b7"
    assert (other.trace_id, other.span_id) == (b"", b"")
    assert plain(other.attributes)["span_id"] == "xyz"


def test_an_exception_has_the_attributes_of_the_conventions(receiver, server):
    cause = ExceptionInfo(type="OSError", message="gone")
    frame = Frame(file="a.py", line=3, function="f")
    exception = ExceptionInfo(type="ValueError", message="no", frames=[frame], cause=cause)
    payload = log_payload("it broke", "ERROR", exception=exception, fields={"rows": 3}, logger="tap.x")
    build(server).write([delivery(payload)])
    ((_, record),) = receiver.records()
    attributes = plain(record.attributes)
    assert attributes["rows"] == 3
    assert attributes["log.logger"] == "tap.x"
    assert attributes["exception.type"] == "ValueError"
    assert attributes["exception.message"] == "no"
    first, _, second = attributes["exception.stacktrace"].split("\n\n")
    assert first == "Traceback (most recent call last):\nOSError: gone"
    assert second == 'Traceback (most recent call last):\n  File "a.py", line 3, in f\nValueError: no'


def test_any_other_payload_is_the_body_as_it_is(receiver, server):
    payload = {"cls_type": "x", "n": [1, 2.5, None, True, {"a": "b"}], "big": 2**70, "least": -(2**63), "empty": {}}
    build(server).write([delivery(payload)])
    ((_, record),) = receiver.records()
    assert plain(record.body.kvlist_value.values) == {**payload, "big": str(2**70)}


def test_what_is_nested_too_deep_is_text(receiver, server):
    deep = msgspec.json.decode(b'{"a":' * 40 + b"1" + b"}" * 40)
    raw = msgspec.Raw(b'{"a":' + b"[" * 50_000 + b"]" * 50_000 + b"}")
    build(server).write([delivery(deep), delivery(raw)])
    (_, cut), (_, text) = receiver.records()
    value = plain(cut.body.kvlist_value.values)
    for _ in range(16):
        value = value["a"]
    assert value.startswith('{"a":{"a"')
    assert text.body.string_value == bytes(raw).decode()


@pytest.mark.parametrize("year", [1, 1969, 2999])
def test_a_time_that_otlp_has_not_is_an_attribute(receiver, server, year):
    when = datetime(year, 6, 1, tzinfo=timezone.utc)
    build(server).write([log(timestamp=when)])
    ((_, record),) = receiver.records()
    assert record.time_unix_nano == 0
    assert plain(record.attributes)["balog.timestamp"] == when.isoformat()


def test_counters_are_sums_of_deltas(receiver, server):
    build(server).write(
        [metric("counter", 2, after=0.1), metric("counter", 3, after=0.5), metric("counter", 4, after=7)]
    )
    rows = receiver.series()["rows"].sum
    assert rows.is_monotonic
    assert [
        (point.start_time_unix_nano - NOON_NS, point.time_unix_nano - NOON_NS, point.as_double)
        for point in rows.data_points
    ] == [
        (99_999_000, 500_000_000, 5.0),
        (6_999_999_000, 7_000_000_000, 4.0),
    ]


def test_a_gauge_is_its_last_level_in_each_second(receiver, server):
    build(server).write([metric("gauge", 2), metric("gauge", -3, after=0.5), metric("gauge", 4, after=2)])
    points = receiver.series()["rows"].gauge.data_points
    assert [(point.time_unix_nano - NOON_NS, point.as_double) for point in points] == [
        (500_000_000, -3.0),
        (2_000_000_000, 4.0),
    ]


def test_timers_are_histograms_in_seconds(receiver, server):
    values = [0.1, 0.5, 0.50001, 99, 7201]
    build(server).write([metric("timer", value, name="t") for value in values])
    series = receiver.series()["t"]
    (point,) = series.histogram.data_points
    assert series.unit == "s"
    counted = dict(zip([*point.explicit_bounds, None], point.bucket_counts))
    assert {bound: count for bound, count in counted.items() if count} == {0.1: 1, 0.5: 1, 1: 1, 300: 1, None: 1}
    assert (point.count, point.min, point.max) == (5, 0.1, 7201)
    assert point.sum == pytest.approx(sum(values))


def test_tags_tell_series_apart_and_applications_resources(receiver, server):
    other = {**CONTEXT, "application": "target-csv"}
    build(server, tags={"env": "prod"}, prefix="pipe").write(
        [
            metric("counter", 1, tags={"stream": "users"}),
            metric("counter", 1, tags={"stream": "orders"}),
            metric("counter", 1, context=other),
        ]
    )
    (request,) = receiver.metrics
    names = [plain(group.resource.attributes)["service.name"] for group in request.resource_metrics]
    assert names == ["tap-stripe", "target-csv"]
    points = request.resource_metrics[0].scope_metrics[0].metrics[0].sum.data_points
    assert [plain(point.attributes) for point in points] == [
        {"stream": "users", "env": "prod"},
        {"stream": "orders", "env": "prod"},
    ]
    assert set(receiver.series()) == {"pipe.rows"}


def test_one_name_of_two_kinds_is_two_metrics(receiver, server):
    build(server).write([metric("counter", 1), metric("gauge", 1)])
    metrics = receiver.metrics[0].resource_metrics[0].scope_metrics[0].metrics
    assert [item.WhichOneof("data") for item in metrics] == ["sum", "gauge"]


def test_a_name_that_no_instrument_has_is_changed(receiver, server):
    build(server).write([metric("counter", 1, name="rows é{}" + "x" * 400)])
    (name,) = receiver.series()
    assert name.startswith("rows____x")
    assert len(name) == 255


def test_a_run_is_a_log_and_metrics(receiver, server):
    run = RunPayload(
        outcome="failed",
        duration=3.5,
        exit_code=2,
        command="tap",
        records=7,
        streams=[StreamCount(stream="a", records=7)],
    )
    build(server).write([delivery(run, level="ERROR")])
    ((_, record),) = receiver.records()
    assert record.body.string_value == "tap failed with exit code 2 after 3.5 s"
    assert plain(record.attributes)["run.exit_code"] == 2
    assert {"run_duration", "runs", "run_succeeded", "run_records"} == set(receiver.series())


def test_what_is_sent_can_be_chosen(receiver, server):
    batch = [log(), metric("counter", 1), delivery(MetricsPayload(values=[MetricValue(name="n", value=1)]))]
    build(server, send=["metrics"]).write(batch)
    assert (len(list(receiver.records())), set(receiver.series())) == (0, {"rows", "n"})
    build(server, send=["logs"]).write(batch)
    assert len(list(receiver.records())) == 3
    assert len(receiver.metrics) == 1


def test_nothing_is_sent_for_a_batch_without_anything_to_send(server):
    build(server, send=["metrics"]).write([log()])
    assert server.requests == []


def test_bodies_are_compressed_unless_the_config_turns_it_off(server):
    build(server).write([log()])
    build(server, compress=False).write([log()])
    assert [request.headers["Content-Encoding"] for request in server.requests] == ["gzip", None]


def test_headers_and_resource_come_along(receiver, server, monkeypatch):
    monkeypatch.setenv("TOKEN", "Bearer s3cret")
    headers = {"Authorization": Secret(env="TOKEN"), "X-Scope-OrgID": "team"}
    build(server, headers=headers, resource={"deployment.environment.name": "prod", "service.name": "etl"}).write(
        [log()]
    )
    assert server.requests[0].headers["Authorization"] == "Bearer s3cret"
    assert server.requests[0].headers["X-Scope-OrgID"] == "team"
    ((resource, _),) = receiver.records()
    assert resource["deployment.environment.name"] == "prod"
    assert resource["service.name"] == "etl"


def test_only_the_part_that_failed_comes_again(server):
    server.respond = lambda request: Answer(503 if request.path == "/v1/metrics" else 200)
    with pytest.raises(SinkError) as caught:
        build(server).write([log(), metric("counter", 1), log()])
    assert caught.value.remaining == [1]
    assert caught.value.retryable


def test_a_probe_sends_nothing_and_tells_who_is_refused(receiver, server):
    server.respond = lambda request: Answer(200, b"{}")
    build(server).probe()
    assert [(request.path, request.body) for request in server.requests] == [
        ("/v1/logs", b'{"resourceLogs":[]}'),
        ("/v1/metrics", b'{"resourceMetrics":[]}'),
    ]
    server.respond = lambda request: Answer(400)
    build(server).probe()
    for status in (401, 404, 503):
        server.respond = lambda request, status=status: Answer(status)
        with pytest.raises(SinkError, match=str(status)):
            build(server).probe()
    server.stop()
    with pytest.raises(SinkError, match="cannot connect"):
        build(server).probe()


def test_what_a_run_measured_is_not_sent_anew_with_each_try_of_its_log(receiver, server):
    """Given a receiver of metrics that knows no logs, then the counters of a run add up to what was counted."""
    sink = build(server)
    batch = [delivery(RunPayload(command="tap", outcome="succeeded", duration=1.0, exit_code=0)), log("beside it")]
    server.respond = lambda request: Answer(404) if request.path == "/v1/logs" else receiver(request)
    for _ in range(3):
        with pytest.raises(SinkError, match="404") as caught:
            sink.write(batch)
        assert caught.value.remaining == [0, 1]
    server.respond = receiver
    sink.write(batch)
    assert len(receiver.metrics) == 1
    assert len(list(receiver.records())) == 2
    sink.write(batch)  # it is another delivery by now
    assert len(receiver.metrics) == 2


@pytest.mark.parametrize(("refused", "taken", "dead", "unnamed"), [(1, 2, [], 1), (2, 1, [0, 2], 0), (9, 1, [0, 2], 0)])
def test_of_a_partial_success_as_many_events_count_as_refused_as_it_says(server, refused, taken, dead, unnamed):
    """Given an answer that refuses some of two logs without saying which, then nothing is sent again."""
    answer = {"partialSuccess": {"rejectedLogRecords": str(refused), "errorMessage": "too old"}}
    server.respond = lambda request: Answer(200, msgspec.json.encode(answer if request.path == "/v1/logs" else {}))
    outcome = attempt(build(server).write, [log(), metric("counter", 1), log()])
    assert (outcome.taken, sorted(outcome.dead), outcome.left, outcome.unnamed) == (taken, dead, [], unnamed)
    assert (
        str(outcome.error)
        == f"the receiver refused {refused} log{'s' * (refused != 1)} of a batch of 2 events: too old"
    )
    assert len(server.requests) == 2


def test_refused_data_points_count_as_events_at_most_as_many_as_there_were(server):
    answer = {"partialSuccess": {"rejectedDataPoints": "5"}}
    server.respond = lambda request: Answer(200, msgspec.json.encode(answer))
    outcome = attempt(build(server, send=["metrics"]).write, [metric("counter", 1), metric("counter", 1)])
    assert (outcome.taken, outcome.dead, outcome.left, outcome.unnamed) == (0, {}, [], 2)
    assert len(server.requests) == 1


def test_a_partial_success_with_a_failure_sends_only_what_failed_again(server):
    answers = {"/v1/logs": Answer(200, b'{"partialSuccess":{"rejectedLogRecords":"1"}}'), "/v1/metrics": Answer(503)}
    server.respond = lambda request: answers[request.path]
    outcome = attempt(build(server).write, [log(), metric("counter", 1), log()])
    assert (outcome.taken, outcome.dead, outcome.left, outcome.unnamed) == (1, {}, [1], 1)


def test_what_is_refused_without_a_name_is_counted_by_a_broker_and_reported_once(server):
    server.respond = lambda request: Answer(200, b'{"partialSuccess":{"rejectedLogRecords":"1"}}')
    said = []
    dispatcher = Dispatcher([OtlpSinkConfig(url=server.url, batch=Batching(age=60))], said.append)
    for _ in range(5):
        dispatcher.put(log())
    ((_, stats),) = dispatcher.close(10).items()
    assert (stats.delivered, stats.dead, stats.lost, stats.dropped) == (4, 1, 1, 0)
    assert stats.warnings() == ["1 event was not delivered"]
    assert len(said) == 1
    assert "it does not say which, so they are counted and not kept" in said[0]


def test_a_warning_in_the_answer_is_no_refusal(server):
    server.respond = lambda request: Answer(200, b'{"partialSuccess":{"errorMessage":"old client"}}')
    build(server).write([log()])


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"\xff", b'{"partialSuccess":3}'])
def test_an_answer_of_something_else_is_an_error(server, body):
    server.respond = lambda request: Answer(200, body)
    with pytest.raises(SinkError, match="as an OTLP receiver") as caught:
        build(server).write([log()])
    assert caught.value.retryable


def test_a_metric_that_is_none_is_rejected_and_the_rest_goes_on(receiver, server):
    bad = delivery({"cls_type": "metric", "type": "counter", "metric": "m", "value": "many"})
    with pytest.raises(SinkError) as caught:
        build(server).write([log(), bad, metric("counter", -2), metric("counter", 1)])
    assert sorted(caught.value.rejected) == [1, 2]
    assert "$.payload.value" in caught.value.rejected[1]
    assert "cannot go down" in caught.value.rejected[2]
    assert caught.value.remaining == []
    assert receiver.series()["rows"].sum.data_points[0].as_double == 1
    assert len(list(receiver.records())) == 1


def test_a_point_without_a_time_is_rejected(server):
    with pytest.raises(SinkError, match="no time like 1969") as caught:
        build(server).write([metric("gauge", 1, after=-1.8e9)])
    assert list(caught.value.rejected) == [0]


def test_the_order_of_tags_makes_no_other_series(receiver, server):
    build(server).write([metric("counter", 1, tags={"a": 1, "b": 2}), metric("counter", 2, tags={"b": 2, "a": 1})])
    (point,) = receiver.series()["rows"].sum.data_points
    assert point.as_double == 3


@pytest.mark.parametrize("path", ["/v1/logs", "/otlp/v1/metrics/", "/v1/traces"])
def test_a_url_of_one_signal_is_refused(path):
    with pytest.raises(ConfigError, match="one signal only") as caught:
        OtlpSinkConfig(url=f"http://localhost:4318{path}").build()
    assert caught.value.path == "url"


@pytest.mark.parametrize("name", ["Authorization", "x-api-key", "DD-Token"])
def test_a_credential_in_plain_text_is_refused_and_not_shown(name):
    with pytest.raises(ConfigError, match="is a secret") as caught:
        OtlpSinkConfig(headers={name: "s3cret"}).build()
    assert caught.value.path == f"headers.{name}"
    assert "s3cret" not in str(caught.value)


contexts = st.dictionaries(st.sampled_from([*CONTEXT, "trace_id", "span_id"]) | st.text(), JSON, max_size=5)
events = st.builds(
    Event.new,
    st.text(min_size=1, max_size=50),
    PAYLOADS,
    context=contexts,
    timestamp=st.datetimes(timezones=st.just(timezone.utc)),
)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(events, min_size=1, max_size=5))
def test_any_events_make_requests_that_are_taken(receiver, server, events):
    before = len(list(receiver.records()))
    sink = build(server)
    error_of_batch = None
    try:
        sink.write([Delivery(event, encode(event)) for event in events])
    except SinkError as error:
        error_of_batch = error
    sink.close()
    assert error_of_batch is None or not error_of_batch.remaining, str(error_of_batch)
    rejected = error_of_batch.rejected if error_of_batch else {}
    arrived = [plain(record.attributes)["log.record.uid"] for _, record in list(receiver.records())[before:]]
    ids = [event.header.id for event in events if event.cls_type not in ("metric", "metrics", "run")]
    assert [item for item in ids if item in arrived] == ids
    assert all(events[index].cls_type in ("metric", "metrics", "run") for index in rejected)


def test_the_same_series_of_two_brokers_are_two_and_of_one_broker_one(receiver, server):
    """Given two brokers that measure one process, then service.instance.id tells their series apart."""
    first, second = build(server), build(server)
    for sink in (first, first, second):
        sink.write([metric("counter", 1)])
    ids = [
        plain(group.resource.attributes)["service.instance.id"]
        for request in receiver.metrics
        for group in request.resource_metrics
    ]
    assert ids[0] == ids[1] != ids[2]


def test_an_instance_that_the_config_names_stays(receiver, server):
    build(server, resource={"service.instance.id": "mine"}).write([metric("counter", 1)])
    [request] = receiver.metrics
    assert plain(request.resource_metrics[0].resource.attributes)["service.instance.id"] == "mine"
