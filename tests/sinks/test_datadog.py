import errno
import re
import socket
from collections import Counter
from datetime import datetime, timedelta, timezone

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from balog.common.errors import ConfigError
from balog.common.secrets import Secret
from balog.event import Event, encode
from balog.event.payload import ExceptionInfo, MetricPayload, RunPayload, StreamCount, log_payload
from balog.sinks import Delivery, SinkError
from balog.sinks.datadog import DatadogSinkConfig
from balog.sinks.measuring.datadog_agent import Agent
from tests.stand_ins.batches import JSON, METRICS, PAYLOADS
from tests.stand_ins.datadog import Datadog
from tests.stand_ins.http_server import Answer, HttpStandIn

KEY = "0123456789abcdef0123456789abcdef"
CONTEXT = {"application": "tap-stripe", "fqdn": "host", "run_id": "R"}


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    monkeypatch.setenv("DATADOG_KEY", KEY)
    for name in ("DD_SERVICE", "DD_ENV", "DD_VERSION", "DATADOG_TAGS", "DD_AGENT_HOST", "DD_ENTITY_ID"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def account():
    return Datadog(KEY)


@pytest.fixture
def server(account):
    with HttpStandIn(account) as server:
        yield server


@pytest.fixture
def agent():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.settimeout(5)
        yield listener


built = []


@pytest.fixture(autouse=True)
def closing():
    yield
    while built:
        built.pop().close()


def opened(config):
    built.append(config.build())
    built[-1].open()
    return built[-1]


def build(server, **options):
    return opened(DatadogSinkConfig(api_key=Secret(env="DATADOG_KEY"), url=server.url, **options))


def build_for(agent, **options):
    return opened(DatadogSinkConfig(agent=Agent(host="127.0.0.1", port=agent.getsockname()[1]), **options))


def received(agent, count):
    lines = []
    while len(lines) < count:
        datagram = agent.recv(65536)
        assert len(datagram) <= 1432
        lines += datagram.decode().splitlines()
    return lines


def delivery(payload, *, level="INFO", context=CONTEXT, timestamp=None):
    event = Event.new("tap.sync", payload, level=level, context=context, timestamp=timestamp)
    return Delivery(event, encode(event))


def log(message="hello", level="INFO", **options):
    return delivery(log_payload(message, level, **options.pop("parts", {})), level=level, **options)


def metric(kind, value, *, name="rows", tags=None, **options):
    return delivery(MetricPayload(type=kind, metric=name, value=value, tags=tags or {}), **options)


def run(outcome, **parts):
    report = RunPayload(outcome=outcome, duration=3.5, exit_code=int(outcome == "failed"), command="tap", **parts)
    return delivery(report, level="ERROR" if outcome == "failed" else "INFO")


class TestLogs:
    def test_a_log_has_what_datadog_reserves_names_for(self, account, server):
        batch = [log("it broke", "WARNING", parts={"fields": {"rows": 3}})]
        build(server, tags={"env": "prod", "team": "data ops"}).write(batch)
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

    def test_a_span_and_an_exception_are_where_datadog_looks_for_them(self, account, server):
        exception = ExceptionInfo(type="ValueError", message="no")
        context = {"trace_id": "ab" * 16, "span_id": "cd" * 8}
        build(server, service="etl").write([log(context=context, parts={"exception": exception})])
        (sent,) = account.logs
        assert sent["dd"] == context
        assert sent["error"]["kind"] == "ValueError"
        assert sent["error"]["stack"] == "Traceback (most recent call last):\nValueError: no"
        assert sent["service"] == "etl"

    @pytest.mark.parametrize("days", [-9000, -1, 300_000])
    def test_a_time_that_would_be_dropped_is_kept_beside(self, account, server, days):
        when = datetime.now(timezone.utc) + timedelta(days=days)
        build(server).write([log(timestamp=when)])
        assert "timestamp" not in account.logs[0]
        assert account.logs[0]["event_timestamp"] == when.isoformat(timespec="milliseconds")

    @pytest.mark.parametrize("text", ["x" * 3_000_000, '"\\' * 1_000_000, "😀" * 500_000, "\1" * 500_000])
    def test_a_huge_one_is_shortened_to_what_is_kept_whole(self, account, server, text):
        context = {"application": text, "fqdn": text, "trace_id": text, "note": text}
        build(server).write([log(text, context=context, parts={"exc_text": text})])
        assert account.logs[0]["payload_shortened"].startswith('{"cls_type":"log"')

    def test_what_is_nested_too_deep_to_be_data_is_text(self, account, server):
        raw = msgspec.Raw(b'{"a":' + b"[" * 40_000 + b"]" * 40_000 + b"}")
        build(server).write([delivery(raw)])
        assert account.logs[0]["payload_shortened"] == bytes(raw).decode()

    def test_many_go_in_as_few_requests_as_may_be(self, account, server):
        build(server).write([log("ü" * 1000) for _ in range(2500)])
        assert len(account.logs) == 2500
        assert len(server.requests) == 3
        build(server).write([log("x" * 900_000) for _ in range(11)])
        assert len(account.logs) == 2511
        assert len(server.requests) == 3 + 3


class TestMetrics:
    def test_counters_gauges_and_timers_are_of_their_types(self, account, server):
        build(server, tags={"env": "prod"}).write(
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

    def test_what_is_counted_in_one_second_adds_up_over_batches(self, account, server):
        """Given that Datadog keeps the last point of a series and second, then that one has the sum."""
        now = datetime.now(timezone.utc).replace(microsecond=0)
        sink = build(server)
        for value in (1, 2, 4):
            sink.write([metric("counter", value, timestamp=now)])
        sink.write([metric("counter", 8, timestamp=now - timedelta(seconds=1)), metric("counter", 16, timestamp=now)])
        assert sorted(account.points.values()) == [8, 23]

    def test_what_several_brokers_count_in_one_second_adds_up(self, account, server):
        """Given brokers at once, on one machine or several, then each count stays; gauges are one series."""
        now = datetime.now(timezone.utc).replace(microsecond=0)
        for value in (1, 2, 4):
            build(server).write(
                [metric("counter", value, timestamp=now), metric("gauge", 3, name="depth", timestamp=now)]
            )
        counts = {tags: value for (name, tags, *_), value in account.points.items() if name == "rows"}
        assert sorted(counts.values()) == [1, 2, 4]
        assert len({tag for tags in counts for tag in tags if tag.startswith("balog_writer:")}) == 3
        assert len([name for name, *_ in account.points if name == "depth"]) == 1

    def test_counts_of_seconds_that_are_forgotten_add_up_too(self, account, server, monkeypatch):
        monkeypatch.setattr("balog.sinks.measuring.datadog_json.CountedSeconds._MOST", 3)
        now = datetime.now(timezone.utc).replace(microsecond=0)
        sink = build(server)
        for seconds in [9, 8, 7, 6, 5, 4, 9, 8, 4, 4, 9]:
            sink.write([metric("counter", 1, timestamp=now - timedelta(seconds=seconds))])
        assert sum(account.points.values()) == 11

    def test_a_request_that_comes_again_counts_nothing_twice(self, account, server):
        sink = build(server)
        batch = [metric("counter", 5)]
        lost = HttpStandIn(lambda request: (account(request), Answer(500))[1])
        server.respond = lost.respond  # taken, but the answer says otherwise
        with pytest.raises(SinkError):
            sink.write(batch)
        server.respond = account
        sink.write(batch)
        assert list(account.points.values()) == [5]

    @pytest.mark.parametrize(("minutes", "why"), [(-61, "more than an hour ago"), (11, "more than ten minutes ahead")])
    def test_a_point_that_would_be_dropped_in_silence_is_rejected(self, account, server, minutes, why):
        old = metric("gauge", 1, timestamp=datetime.now(timezone.utc) + timedelta(minutes=minutes))
        with pytest.raises(SinkError, match=why) as caught:
            build(server).write([metric("gauge", 2), old])
        assert list(caught.value.rejected) == [1]
        assert caught.value.remaining == []
        assert list(account.points.values()) == [2]

    def test_a_metric_that_is_none_is_rejected(self, account, server):
        bad = delivery({"cls_type": "metric", "type": "counter", "metric": "m", "value": "many"})
        with pytest.raises(SinkError) as caught:
            build(server).write([bad, log()])
        assert list(caught.value.rejected) == [0]
        assert len(account.logs) == 1

    def test_many_series_are_parted_by_size(self, account, server):
        build(server, max_series=10_000).write(
            [metric("gauge", n, tags={"id": n, "pad": "x" * 150}) for n in range(3000)]
        )
        assert len(account.points) == 3000
        assert 1 < len(server.requests) < 5

    def test_what_no_request_can_hold_is_rejected(self, account, server):
        tags = {f"t{n}": "x" * 190 for n in range(3000)}
        with pytest.raises(SinkError, match="does not fit") as caught:
            build(server).write([metric("gauge", 1, tags=tags), metric("gauge", 2)])
        assert list(caught.value.rejected) == [0]
        assert list(account.points.values()) == [2]


class TestWhatIsSent:
    def test_a_run_is_metrics_and_a_log(self, account, server):
        build(server).write([run("succeeded", records=7, streams=[StreamCount(stream="a", records=7)])])
        assert account.logs[0]["message"] == "tap succeeded after 3.5 s"
        assert {name for name, *_ in account.points} == {"runs", "run_succeeded", "run_records"}
        assert [name for name, *_ in account.spread] == ["run_duration"]

    @pytest.mark.parametrize("down", ["/api/v2/logs", "/api/v1/distribution_points"])
    def test_what_a_run_counted_is_counted_once_however_often_the_rest_is_tried(self, account, server, down):
        """Given that one kind of request is refused for a while, then what the others brought is not added anew."""
        sink = build(server)
        batch = [run("succeeded", records=7, streams=[StreamCount(stream="a", records=7)]), log("bad", "ERROR")]
        server.respond = lambda request: Answer(403) if request.path == down else account(request)
        for _ in range(3):
            with pytest.raises(SinkError, match="403") as caught:
                sink.write(batch)
            batch = [batch[index] for index in caught.value.remaining]
        server.respond = account
        sink.write(batch)
        values = {name: value for (name, *_), value in account.points.items()}
        assert values == {"runs": 1, "run_succeeded": 1, "run_records": 7}
        assert list(account.spread.values()) == [[3.5]]
        assert len(account.logs) == 2

    def test_only_logs(self, account, server):
        build(server, send=["logs"]).write([metric("counter", 1), log()])
        assert [item["balog"]["cls_type"] for item in account.logs] == ["metric", "log"]
        assert account.points == {}


class TestTrouble:
    @pytest.mark.parametrize(
        ("status", "is_retryable"), [(400, False), (403, True), (408, True), (413, False), (429, True), (500, True)]
    )
    def test_answers_are_told_apart(self, server, status, is_retryable):
        server.respond = lambda request: Answer(status, b'{"errors":["because"]}')
        with pytest.raises(SinkError, match="because") as caught:
            build(server).write([log(), log()])
        assert caught.value.retryable == is_retryable
        assert caught.value.remaining == [0, 1]

    def test_a_refused_key_is_told_and_not_said(self, server, monkeypatch):
        monkeypatch.setenv("DATADOG_KEY", "f" * 32)
        with pytest.raises(SinkError, match="api_key right") as caught:
            build(server).write([log()])
        assert "ffff" not in str(caught.value)
        assert caught.value.retryable

    def test_after_trouble_the_later_requests_are_kept_for_later(self, server):
        server.will(Answer(202), Answer(503, headers={"Retry-After": "9"}))
        with pytest.raises(SinkError) as caught:
            build(server).write([log() for _ in range(2500)])
        assert caught.value.remaining == list(range(1000, 2500))
        assert caught.value.retry_after == 9
        assert len(server.requests) == 2

    def test_faults_in_an_answer_of_success_are_rejections(self, server):
        server.respond = lambda request: Answer(202, b'{"errors":["metric too odd"]}')
        with pytest.raises(SinkError, match="metric too odd") as caught:
            build(server).write([metric("counter", 1)])
        assert list(caught.value.rejected) == [0]

    def test_an_answer_of_something_else_is_trouble(self, server):
        server.respond = lambda request: Answer(200, b"<html>")
        with pytest.raises(SinkError, match="as Datadog does") as caught:
            build(server).write([log()])
        assert caught.value.retryable


class TestProbe:
    def test_it_asks_whether_the_key_is_known(self, server):
        server.respond = lambda request: Answer(200 if request.headers["DD-API-KEY"] == KEY else 403)
        build(server).probe()
        assert [(request.method, request.path) for request in server.requests] == [("GET", "/api/v1/validate")]
        server.respond = lambda request: Answer(403)
        with pytest.raises(SinkError, match="403"):
            build(server).probe()

    def test_an_agent_says_nothing(self, agent):
        build_for(agent).probe()

    @pytest.mark.parametrize(
        ("place", "says"),
        [({"host": "no-such-host.invalid"}, "cannot be resolved"), ({"socket": "/no/such.socket"}, "No such file")],
    )
    def test_an_agent_that_cannot_be_is_told(self, place, says):
        sink = DatadogSinkConfig(agent=Agent(**place)).build()
        with pytest.raises(SinkError, match=says):
            sink.probe()


class TestAgent:
    def test_metrics_go_as_datagrams(self, agent):
        build_for(agent, tags={"env": "prod"}).write(
            [
                metric("counter", 2, tags={"stream": "a|b,c\n#d"}),
                metric("gauge", -5.5, name="de:pth"),
                metric("timer", 0.25, name="took"),
                log(),
            ]
        )
        common = "env:prod,service:tap-stripe"
        assert received(agent, 3) == [
            f"rows:2.0|c|#{common},stream:a_b_c_d",
            f"de_pth:-5.5|g|#{common}",
            f"took:0.25|d|#{common}",
        ]

    def test_many_fill_datagrams(self, agent):
        build_for(agent).write([metric("counter", n) for n in range(300)])
        assert [float(re.search(r":([\d.]+)\|", line)[1]) for line in received(agent, 300)] == list(range(300))

    def test_metrics_by_the_agent_and_logs_over_https(self, account, server, agent):
        port = agent.getsockname()[1]
        build(server, agent=Agent(host="127.0.0.1", port=port)).write([metric("timer", 1), log()])
        assert received(agent, 1) == ["rows:1.0|d|#service:tap-stripe"]
        assert (len(account.logs), account.points) == (1, {})

    def test_a_unix_socket(self, tmp_path):
        path = str(tmp_path / "dsd.sock")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
            listener.bind(path)
            sink = DatadogSinkConfig(agent=Agent(socket=path)).build()
            sink.write([metric("counter", 1)])
            assert listener.recv(1000) == b"rows:1.0|c|#service:tap-stripe\n"
            sink.close()

    def test_an_agent_that_is_away_is_told_in_one_line_and_comes_back(self, agent, capfd):
        port = agent.getsockname()[1]
        sink = build_for(agent)
        agent.close()
        with pytest.raises(SinkError, match=f"127.0.0.1:{port}: nobody listens there") as caught:
            sink.write([metric("counter", n) for n in range(100)])
        assert caught.value.retryable
        assert caught.value.remaining == list(range(100))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as again:
            again.bind(("127.0.0.1", port))
            again.settimeout(5)
            sink.write([metric("counter", 7)])
            assert received(again, 1) == ["rows:7.0|c|#service:tap-stripe"]
        sink.close()
        assert capfd.readouterr() == ("", "")

    def test_only_what_did_not_go_out_comes_again(self, agent, monkeypatch):
        sink = build_for(agent)
        real, sent = socket.socket.send, []

        def send(self, data, *rest):
            if len(sent) == 2:
                raise OSError(errno.ENETDOWN, "Network is down")
            sent.append(data)
            return real(self, data, *rest)

        monkeypatch.setattr(socket.socket, "send", send)
        with pytest.raises(SinkError, match="Network is down") as caught:
            sink.write([metric("counter", n) for n in range(200)])
        gone = sum(data.count(b"\n") for data in sent)
        assert 0 < gone < 200
        assert caught.value.remaining == list(range(gone, 200))

    def test_a_name_that_nobody_knows(self):
        sink = DatadogSinkConfig(agent=Agent(host="nobody.invalid")).build()
        with pytest.raises(SinkError, match=r"nobody\.invalid:8125: cannot be resolved") as caught:
            sink.write([metric("counter", 1)])
        assert caught.value.remaining == [0]


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
    def test_a_site_that_is_none(self, site):
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
def test_any_events_make_requests_that_are_taken(account, server, events, tags):
    before = len(account.logs)
    sink = build(server, tags=tags)
    trouble = None
    try:
        sink.write([Delivery(event, encode(event)) for event in events])
    except SinkError as error:
        trouble = error
    sink.close()
    assert trouble is None or not trouble.remaining, str(trouble)
    told = {item["balog"]["id"] for item in account.logs[before:]}
    assert {event.header.id for event in events if event.cls_type not in ("metric", "metrics", "run")} <= told


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(METRICS, min_size=1, max_size=5), st.dictionaries(st.text(min_size=1), st.text(), max_size=2))
def test_any_metric_is_a_line_that_an_agent_can_read(agent, found, tags):
    sink = build_for(agent, tags=tags)
    sink.write([delivery(payload) for payload in found])
    sink.close()
    for payload, line in zip(found, received(agent, len(found))):
        value, kind, listed = re.fullmatch(r"[A-Za-z][\w.]*:([^|:]+)\|([cgd])\|#(.*)", line).groups()
        assert float(value) == payload.value
        assert kind == {"counter": "c", "gauge": "g", "timer": "d"}[payload.type]
        assert all(re.fullmatch(r"[^\W\d_][^|#,\n]*", tag) for tag in listed.split(","))
