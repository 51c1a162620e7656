from collections import Counter
from datetime import datetime, timedelta, timezone

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from balog.common.errors import ConfigError
from balog.common.secrets import Secret
from balog.event import Event
from balog.event.payload import ExceptionInfo, MetricPayload, RunPayload, StreamCount, log_payload
from balog.sinks import SinkError
from balog.sinks.datadog import DatadogSinkConfig
from balog.sinks.measuring.datadog_agent import Agent
from tests.stand_ins.batches import JSON, PAYLOADS, deliver, refused
from tests.stand_ins.datadog import Datadog
from tests.stand_ins.http_server import Answer, HttpStandIn

KEY = "0123456789abcdef0123456789abcdef"
CONTEXT = {"application": "tap-stripe", "fqdn": "host", "run_id": "R"}


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    monkeypatch.setenv("DATADOG_KEY", KEY)


@pytest.fixture
def account():
    return Datadog(KEY)


@pytest.fixture
def server(account):
    with HttpStandIn(account) as server:
        yield server


@pytest.fixture
def build(server, opened):
    return lambda **options: opened(DatadogSinkConfig(api_key=Secret(env="DATADOG_KEY"), url=server.url, **options))


def delivery(payload, *, level="INFO", context=CONTEXT, timestamp=None):
    return deliver(Event.new("tap.sync", payload, level=level, context=context, timestamp=timestamp))[0]


def log(message="hello", level="INFO", **options):
    return delivery(log_payload(message, level, **options.pop("parts", {})), level=level, **options)


def metric(kind, value, *, name="rows", tags=None, **options):
    return delivery(MetricPayload(type=kind, metric=name, value=value, tags=tags or {}), **options)


def run(outcome, **parts):
    report = RunPayload(outcome=outcome, duration=3.5, exit_code=int(outcome == "failed"), command="tap", **parts)
    return delivery(report, level="ERROR" if outcome == "failed" else "INFO")


class TestLogs:
    def test_a_log_has_what_datadog_reserves_names_for(self, account, server, build):
        batch = [log("it broke", "WARNING", parts={"fields": {"rows": 3}})]
        build(tags={"env": "prod", "team": "data ops"}).write(batch)
        (sent,) = account.logs
        event = batch[0].event
        assert sent == {
            "message": "it broke",
            "ddsource": "balog",
            "ddtags": "env:prod,team:data_ops",
            "hostname": "host",
            "service": "tap-stripe",
            "status": "warning",
            "timestamp": event.header.timestamp.isoformat(timespec="milliseconds"),
            "balog": {"id": event.header.id, "channel": "tap.sync", "cls_type": "log"},
            "context": {"run_id": "R"},
            "payload": {"version": "1.0.0", "severity": "WARNING", "fields": {"rows": 3}},
        }
        assert server.requests[0].headers["Content-Encoding"] == "gzip"

    def test_a_span_and_an_exception_are_where_datadog_looks_for_them(self, account, build):
        exception = ExceptionInfo(type="ValueError", message="no")
        context = {"trace_id": "ab" * 16, "span_id": "cd" * 8}
        build(service="etl").write([log(context=context, parts={"exception": exception})])
        (sent,) = account.logs
        assert sent["dd"] == context
        assert sent["error"]["kind"] == "ValueError"
        assert sent["error"]["stack"] == "Traceback (most recent call last):\nValueError: no"
        assert sent["service"] == "etl"

    @pytest.mark.parametrize("days", [-9000, -1, 300_000])
    def test_a_time_that_would_be_dropped_is_kept_beside(self, account, build, days):
        when = datetime.now(timezone.utc) + timedelta(days=days)
        build().write([log(timestamp=when)])
        assert "timestamp" not in account.logs[0]
        assert account.logs[0]["event_timestamp"] == when.isoformat(timespec="milliseconds")

    @pytest.mark.parametrize("text", ["x" * 3_000_000, '"\\' * 1_000_000, "😀" * 500_000, "\1" * 500_000])
    def test_a_huge_one_is_shortened_to_what_is_kept_whole(self, account, build, text):
        context = {"application": text, "fqdn": text, "trace_id": text, "note": text}
        build().write([log(text, context=context, parts={"exc_text": text})])
        assert account.logs[0]["payload_shortened"].startswith('{"cls_type":"log"')

    def test_what_is_nested_too_deep_to_be_data_is_text(self, account, build):
        raw = msgspec.Raw(b'{"a":' + b"[" * 40_000 + b"]" * 40_000 + b"}")
        build().write([delivery(raw)])
        assert account.logs[0]["payload_shortened"] == bytes(raw).decode()

    def test_many_go_in_as_few_requests_as_may_be(self, account, server, build):
        build().write([log("ü" * 1000) for _ in range(2500)])
        assert len(account.logs) == 2500
        assert len(server.requests) == 3
        build().write([log("x" * 900_000) for _ in range(11)])
        assert len(account.logs) == 2511
        assert len(server.requests) == 3 + 3


class TestMetrics:
    def test_counters_gauges_and_timers_are_of_their_types(self, account, build):
        build(tags={"env": "prod"}).write(
            [
                metric("counter", 2, tags={"stream": "users"}),
                metric("counter", 3, tags={"stream": "users"}, name="rows"),
                metric("gauge", -5, name="depth"),
                metric("timer", 0.25, name="took"),
                metric("timer", 0.5, name="took"),
            ]
        )
        tags = ("env:prod", "service:tap-stripe", "stream:users")
        totals = Counter()
        for (name, found, host, _), value in account.points.items():
            totals[name, tuple(tag for tag in found if not tag.startswith("balog_writer:")), host] += value
        assert totals == {("rows", tags, "host"): 5.0, ("depth", (tags[0], tags[1]), "host"): -5.0}
        assert account.types == {"rows": 1, "depth": 3}
        assert account.spread == {("took", (tags[0], tags[1]), "host"): [0.25, 0.5]}
        assert account.logs == []

    def test_what_is_counted_in_one_second_adds_up_over_batches(self, account, build):
        """Given that Datadog keeps the last point of a series and second, then that one has the sum."""
        now = datetime.now(timezone.utc).replace(microsecond=0)
        sink = build()
        for value in (1, 2, 4):
            sink.write([metric("counter", value, timestamp=now)])
        sink.write([metric("counter", 8, timestamp=now - timedelta(seconds=1)), metric("counter", 16, timestamp=now)])
        assert sorted(account.points.values()) == [8, 23]

    def test_what_several_brokers_count_in_one_second_adds_up(self, account, build):
        """Given brokers at once, on one machine or several, then each count stays; gauges are one series."""
        now = datetime.now(timezone.utc).replace(microsecond=0)
        for value in (1, 2, 4):
            build().write([metric("counter", value, timestamp=now), metric("gauge", 3, name="depth", timestamp=now)])
        counts = {tags: value for (name, tags, *_), value in account.points.items() if name == "rows"}
        assert sorted(counts.values()) == [1, 2, 4]
        assert len({tag for tags in counts for tag in tags if tag.startswith("balog_writer:")}) == 3
        assert len([name for name, *_ in account.points if name == "depth"]) == 1

    def test_counts_of_seconds_that_are_forgotten_add_up_too(self, account, build, monkeypatch):
        monkeypatch.setattr("balog.sinks.measuring.datadog_json.CountedSeconds._MOST", 3)
        now = datetime.now(timezone.utc).replace(microsecond=0)
        sink = build()
        for seconds in [9, 8, 7, 6, 5, 4, 9, 8, 4, 4, 9]:
            sink.write([metric("counter", 1, timestamp=now - timedelta(seconds=seconds))])
        assert sum(account.points.values()) == 11

    def test_a_request_that_comes_again_counts_nothing_twice(self, account, server, build):
        sink = build()
        batch = [metric("counter", 5)]
        lost = HttpStandIn(lambda request: (account(request), Answer(500))[1])
        server.respond = lost.respond  # taken, but the answer says otherwise
        refused(sink, batch)
        server.respond = account
        sink.write(batch)
        assert list(account.points.values()) == [5]

    @pytest.mark.parametrize(("minutes", "why"), [(-61, "more than an hour ago"), (11, "more than ten minutes ahead")])
    def test_a_point_that_would_be_dropped_in_silence_is_rejected(self, account, build, minutes, why):
        old = metric("gauge", 1, timestamp=datetime.now(timezone.utc) + timedelta(minutes=minutes))
        with pytest.raises(SinkError, match=why) as caught:
            build().write([metric("gauge", 2), old])
        assert list(caught.value.rejected) == [1]
        assert caught.value.remaining == []
        assert list(account.points.values()) == [2]

    def test_a_metric_that_is_none_is_rejected(self, account, build):
        bad = delivery({"cls_type": "metric", "type": "counter", "metric": "m", "value": "many"})
        assert list(refused(build(), [bad, log()]).rejected) == [0]
        assert len(account.logs) == 1

    def test_many_series_are_parted_by_size(self, account, server, build):
        build(max_series=10_000).write([metric("gauge", n, tags={"id": n, "pad": "x" * 150}) for n in range(3000)])
        assert len(account.points) == 3000
        assert 1 < len(server.requests) < 5

    def test_what_no_request_can_hold_is_rejected(self, account, build):
        tags = {f"t{n}": "x" * 190 for n in range(3000)}
        error = refused(build(), [metric("gauge", 1, tags=tags), metric("gauge", 2)], "does not fit")
        assert list(error.rejected) == [0]
        assert list(account.points.values()) == [2]


class TestWhatIsSent:
    def test_a_run_is_metrics_and_a_log(self, account, build):
        build().write([run("succeeded", records=7, streams=[StreamCount(stream="a", records=7)])])
        assert account.logs[0]["message"] == "tap succeeded after 3.5 s"
        assert {name for name, *_ in account.points} == {"runs", "run_succeeded", "run_records"}
        assert [name for name, *_ in account.spread] == ["run_duration"]

    @pytest.mark.parametrize("down", ["/api/v2/logs", "/api/v1/distribution_points"])
    def test_what_a_run_counted_is_counted_once_however_often_the_rest_is_tried(self, account, server, down, build):
        """Given that one kind of request is refused for a while, then what the others brought is not added anew."""
        sink = build()
        batch = [run("succeeded", records=7, streams=[StreamCount(stream="a", records=7)]), log("bad", "ERROR")]
        server.respond = lambda request: Answer(403) if request.path == down else account(request)
        for _ in range(3):
            error = refused(sink, batch, "403")
            batch = [batch[index] for index in error.remaining]
        server.respond = account
        sink.write(batch)
        values = {name: value for (name, *_), value in account.points.items()}
        assert values == {"runs": 1, "run_succeeded": 1, "run_records": 7}
        assert list(account.spread.values()) == [[3.5]]
        assert len(account.logs) == 2

    def test_only_logs(self, account, build):
        build(send=["logs"]).write([metric("counter", 1), log()])
        assert [item["balog"]["cls_type"] for item in account.logs] == ["metric", "log"]
        assert account.points == {}


class TestTrouble:
    @pytest.mark.parametrize(
        ("status", "is_retryable"), [(400, False), (403, True), (408, True), (413, False), (429, True), (500, True)]
    )
    def test_answers_are_told_apart(self, server, status, is_retryable, build):
        server.respond = lambda request: Answer(status, b'{"errors":["because"]}')
        error = refused(build(), [log(), log()], "because")
        assert error.retryable == is_retryable
        assert error.remaining == [0, 1]

    def test_a_refused_key_is_told_and_not_said(self, build, monkeypatch):
        monkeypatch.setenv("DATADOG_KEY", "f" * 32)
        error = refused(build(), [log()], "credentials right, and those of this server")
        assert "ffff" not in str(error)
        assert error.retryable

    def test_after_trouble_the_later_requests_are_kept_for_later(self, server, build):
        server.will(Answer(202), Answer(503, headers={"Retry-After": "9"}))
        error = refused(build(), [log() for _ in range(2500)])
        assert error.remaining == list(range(1000, 2500))
        assert error.retry_after == 9
        assert len(server.requests) == 2

    def test_faults_in_an_answer_of_success_are_rejections(self, server, build):
        server.respond = lambda request: Answer(202, b'{"errors":["metric too odd"]}')
        assert list(refused(build(), [metric("counter", 1)], "metric too odd").rejected) == [0]

    def test_an_answer_of_something_else_is_trouble(self, server, build):
        server.respond = lambda request: Answer(200, b"<html>")
        assert refused(build(), [log()], "as Datadog does").retryable


class TestProbe:
    def test_it_asks_whether_the_key_is_known(self, server, build):
        server.respond = lambda request: Answer(200 if request.headers["DD-API-KEY"] == KEY else 403)
        build().probe()
        assert [(request.method, request.path) for request in server.requests] == [("GET", "/api/v1/validate")]
        server.respond = lambda request: Answer(403)
        with pytest.raises(SinkError, match="403"):
            build().probe()


class TestConfig:
    def test_neither_key_nor_agent(self):
        with pytest.raises(ConfigError, match="or an agent") as caught:
            DatadogSinkConfig().build()
        assert caught.value.path == "api_key"

    def test_what_an_agent_does_not_take_needs_a_key(self):
        with pytest.raises(ConfigError, match="an agent takes no logs"):
            DatadogSinkConfig(agent=Agent(), send=["metrics", "logs"]).build()

    @pytest.mark.parametrize(
        "site", ["app.datadoghq.com", "https://datadoghq.com", "datadoghq", "a b.com", "x.com/y", ""]
    )
    def test_a_site_that_is_none(self, site, build):
        with pytest.raises(ConfigError, match=r"us5\.datadoghq\.com") as caught:
            DatadogSinkConfig(api_key=Secret(env="DATADOG_KEY"), site=site).build()
        assert caught.value.path == "site"

    def test_names(self):
        key = Secret(env="DATADOG_KEY")
        assert DatadogSinkConfig(api_key=key, site="datadoghq.eu").name == "datadog datadoghq.eu"
        assert DatadogSinkConfig(agent=Agent()).name == "datadog localhost:8125"
        assert DatadogSinkConfig(agent=Agent(), api_key=key, url="http://p:1").name == "datadog http://p:1"


contexts = st.dictionaries(st.sampled_from([*CONTEXT, "trace_id", "span_id"]) | st.text(), JSON, max_size=5)
events = st.builds(
    Event.new,
    st.text(min_size=1, max_size=50),
    PAYLOADS,
    level=st.sampled_from(["INFO", "ERROR"]),
    context=contexts,
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(events, min_size=1, max_size=5), st.dictionaries(st.text(min_size=1), st.text(), max_size=2))
def test_any_events_make_requests_that_are_taken(account, build, events, tags):
    before = len(account.logs)
    trouble = None
    try:
        build(tags=tags).write(deliver(*events))
    except SinkError as error:
        trouble = error
    assert trouble is None or not trouble.remaining, str(trouble)
    told = {item["balog"]["id"] for item in account.logs[before:]}
    assert {event.header.id for event in events if event.cls_type not in ("metric", "metrics", "run")} <= told
