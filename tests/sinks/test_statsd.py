import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from balog.common.errors import ConfigError
from balog.event import Event
from balog.sinks import statsd
from balog.sinks.base import SinkError
from balog.sinks.measuring.measures import Measure
from balog.sinks.statsd import Lines, StatsdSinkConfig, clean_name
from tests.stand_ins.batches import deliver, metric, refused

RESERVED = {"kind", "name", "value"}  # parameters of metric()
LINE = re.compile(r"(?P<name>[^:|@#\n]+):(?P<value>-?[0-9.e+-]+)\|(?P<type>c|g|ms)(?:\|#(?P<tags>[^|@\n]+))?")


class Receiver:
    """A UDP socket that somebody listens at."""

    def __init__(self, family=socket.AF_INET, address=("127.0.0.1", 0)):
        self.socket = socket.socket(family, socket.SOCK_DGRAM)
        self.socket.bind(address)
        self.socket.settimeout(0.2)
        self.port = self.socket.getsockname()[1]

    def datagrams(self) -> list[bytes]:
        found = []
        try:
            while True:
                found.append(self.socket.recv(65536))
        except TimeoutError:
            return found

    def lines(self) -> list[str]:
        return [line for datagram in self.datagrams() for line in datagram.decode().split("\n")]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    yield found
    found.socket.close()


@contextmanager
def sink_to(receiver=None, **options):
    config = StatsdSinkConfig(**({"host": "127.0.0.1", "port": receiver.port} if receiver else {}), **options)
    sink = config.build()
    sink.open()
    yield sink
    sink.close()


def free_port(family=socket.AF_INET, host="127.0.0.1") -> int:
    with socket.socket(family, socket.SOCK_DGRAM) as one:
        one.bind((host, 0))
        return one.getsockname()[1]


class TestLines:
    def test_plain(self, receiver):
        with sink_to(receiver, prefix="taps") as sink:
            sink.write(
                deliver(metric(value=3, stream="a"), metric("timer", "job duration", 0.25), metric("gauge", "q", 1.5))
            )
        assert receiver.lines() == ["taps.record_count:3|c", "taps.job_duration:250|ms", "taps.q:1.5|g"]

    def test_plain_puts_the_tags_that_are_asked_for_into_the_name(self, receiver):
        with sink_to(receiver, name_tags=("env", "stream"), tags={"env": "prod"}) as sink:
            sink.write(deliver(metric(stream="a.b:c", other="x"), metric()))
        assert receiver.lines() == ["record_count.prod.a_b_c:1|c", "record_count.prod:1|c"]

    def test_a_gauge_below_zero_is_no_decrement(self, receiver):
        """Given plain statsd, which reads a sign as a change, then the gauge is at zero before."""
        with sink_to(receiver) as sink:
            sink.write(deliver(metric("gauge", "q", -5)))
        assert receiver.datagrams() == [b"q:0|g\nq:-5|g"]

    def test_dogstatsd(self, receiver):
        with sink_to(receiver, format="dogstatsd", tags={"env": "prod"}) as sink:
            events = metric(stream="größe 1|2,3", url="http://x/y#z"), metric("gauge", "q", -5), metric("timer", "t", 1)
            sink.write(deliver(*events))
        assert receiver.lines() == [
            "record_count:1|c|#stream:größe_1_2_3,url:http://x/y_z,env:prod",
            "q:-5|g|#env:prod",
            "t:1000|ms|#env:prod",
        ]

    def test_metrics_and_runs_are_sent_and_other_events_are_not(self, receiver):
        run = {"cls_type": "run", "outcome": "succeeded", "duration": 2, "exit_code": 0, "command": "tap", "records": 5}
        values = {"cls_type": "metrics", "values": [{"name": "x", "value": 1}]}
        log = Event.new("a", {"cls_type": "log", "message": "x"})
        with sink_to(receiver, format="dogstatsd") as sink:
            sink.write(deliver(log))  # no datagram
            sink.write(deliver(log, Event.new("a", run), Event.new("a", values)))
        assert receiver.lines() == [
            "run_duration:2000|ms|#outcome:succeeded",
            "runs:1|c|#outcome:succeeded",
            "run_succeeded:1|g",
            "run_records:5|c",
            "x:1|g",
        ]

    @settings(max_examples=200)
    @example(kind="timer", name="a\nb", value=1e306, tags={}, format="plain")
    @given(
        kind=st.sampled_from(["counter", "gauge", "timer"]),
        name=st.text(min_size=1),
        value=st.floats(allow_nan=False, allow_infinity=False),
        tags=st.dictionaries(st.text(), st.text() | st.integers() | st.booleans() | st.none(), max_size=5),
        format=st.sampled_from(["plain", "dogstatsd"]),
    )
    def test_any_metric_is_lines_that_can_be_parsed(self, kind, name, value, tags, format):
        """Given any name, value and tags, then each line has the protocol's form and the value, or it is refused."""
        name_tags = tuple(key for key in tags if key) if format == "plain" else ()
        sink = StatsdSinkConfig(format=format, name_tags=name_tags).build()
        sent: list[bytes] = []
        sink._addresses = [(0, None)]
        sink._send = sent.append
        batch = deliver(metric(kind, name, value, **{key: tag for key, tag in tags.items() if key not in RESERVED}))
        if kind == "timer" and (value < 0 or value * 1000 == float("inf")):
            assert list(refused(sink, batch).rejected) == [0]
            return
        sink.write(batch)
        lines = [LINE.fullmatch(line) for datagram in sent for line in datagram.decode().split("\n")]
        assert lines
        assert all(lines), sent
        last = lines[-1]
        assert last["name"].startswith(clean_name(name))
        wanted = value * 1000 if kind == "timer" else value
        assert float(last["value"]) == pytest.approx(wanted, rel=1e-9, abs=1e-6)
        if format == "plain" and kind == "gauge" and value < 0:
            assert len(lines) == 2
            assert lines[0]["value"] == "0"
        else:
            assert len(lines) == 1


class TestLinesOfOneSeries:
    """What is remembered of a series changes nothing."""

    def test_tags_that_are_shared_or_equal_are_told_apart_by_name_and_kind(self):
        lines, tags = Lines(None), {"stream": "a"}
        when = datetime(2026, 1, 1, tzinfo=timezone.utc)
        for _ in range(2):
            for kind, name, own, line in [
                ("counter", "x", tags, b"x:1|c|#stream:a"),
                ("counter", "y", tags, b"y:1|c|#stream:a"),
                ("gauge", "y", tags, b"y:1|g|#stream:a"),
                ("gauge", "y", {"stream": "b"}, b"y:1|g|#stream:b"),
            ]:
                assert lines.write(Measure(kind, name, 1.0, own, when)) == line

    def test_there_are_bounds(self, monkeypatch):
        monkeypatch.setattr(statsd, "_MAX_KNOWN", 5)
        lines, when = Lines(["n"]), datetime(2026, 1, 1, tzinfo=timezone.utc)
        for number in range(50):
            assert lines.write(Measure("gauge", "x", 1.0, {"n": str(number)}, when)) == f"x.{number}:1|g".encode()
            assert len(lines._known) <= 5


class TestDatagrams:
    @pytest.fixture(autouse=True)
    def small_datagrams(self, monkeypatch):
        monkeypatch.setattr("balog.sinks.statsd._MAX_DATAGRAM", 100)

    def test_metrics_share_datagrams_up_to_the_size(self, receiver):
        with sink_to(receiver) as sink:
            sink.write(deliver(*(metric(value=number) for number in range(100))))
        datagrams = receiver.datagrams()
        assert all(len(datagram) <= 100 for datagram in datagrams)
        assert [line for one in datagrams for line in one.decode().split("\n")] == [
            f"record_count:{number}|c" for number in range(100)
        ]
        assert len(datagrams) < 25

    def test_what_no_datagram_holds_is_refused_and_the_rest_is_sent(self, receiver):
        with sink_to(receiver) as sink:
            events = metric(), metric(name="x" * 100), metric("timer", value=-1), metric("timer", value=1e308)
            error = refused(sink, deliver(*events))
        assert not error.retryable
        assert error.rejected == {
            1: f"the counter {'x' * 100} does not fit into a statsd datagram",
            2: "$.payload.value: a timer cannot be -1 seconds",
            3: "the timer record_count does not fit into a statsd datagram",
        }
        assert error.remaining == []
        assert receiver.lines() == ["record_count:1|c"]


class TestTrouble:
    def test_a_port_where_nobody_listens_is_said_and_the_batch_comes_again(self):
        with sink_to(host="127.0.0.1", port=free_port()) as sink:
            port = sink._config.port
            for _ in range(2):
                error = refused(sink, deliver(metric(), Event.new("a", {}), metric()))
                assert str(error) == f"127.0.0.1:{port}: nobody listens there"
                assert error.retryable
                assert error.remaining == [0, 2]
            late = Receiver(address=("127.0.0.1", port))
            sink.write(deliver(metric(value=7)))
            assert late.lines() == ["record_count:7|c"]
            late.socket.close()

    def test_what_was_sent_before_the_refusal_does_not_come_again(self, receiver, monkeypatch):
        """Given a server that goes away between two datagrams of a batch, then only the second one's events remain."""
        monkeypatch.setattr("balog.sinks.statsd._MAX_DATAGRAM", 100)
        with sink_to(receiver) as sink:
            send, sent = sink._send, []

            def send_and_go(data):
                if sent:
                    receiver.socket.close()
                sent.append(data)
                send(data)

            sink._send = send_and_go
            error = refused(sink, deliver(*(metric(name="x" * 40, value=number) for number in range(4))))
        assert len(sent) == 2
        assert error.remaining == [2, 3]

    def test_of_a_names_addresses_the_one_that_answers_is_taken(self, receiver, monkeypatch):
        """Given localhost with an IPv6 address first, at which nobody listens, then the IPv4 one gets the metrics."""
        addresses = [
            (socket.AF_INET6, socket.SOCK_DGRAM, 17, "", ("::1", free_port(socket.AF_INET6, "::1"), 0, 0)),
            (socket.AF_INET, socket.SOCK_DGRAM, 17, "", ("127.0.0.1", receiver.port)),
        ]
        monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: list(addresses))
        with sink_to(host="localhost", port=receiver.port) as sink:
            sink.write(deliver(metric()))
            sink.write(deliver(metric(value=2)))
        assert receiver.lines() == ["record_count:1|c", "record_count:2|c"]

    def test_a_name_that_cannot_be_resolved_is_said(self):
        with pytest.raises(SinkError, match=r"nothing\.invalid cannot be resolved") as refusal:
            StatsdSinkConfig(host="nothing.invalid").build().open()
        assert refusal.value.retryable
        with pytest.raises(SinkError, match="is no host name"):
            StatsdSinkConfig(host="x" * 70 + ".org").build().open()

    def test_ipv6(self):
        receiver = Receiver(socket.AF_INET6, ("::1", 0))
        with sink_to(host="::1", port=receiver.port) as sink:
            sink.write(deliver(metric()))
        assert receiver.lines() == ["record_count:1|c"]
        receiver.socket.close()
        assert StatsdSinkConfig(host="::1").name == "statsd [::1]:8125"


class TestConfig:
    @pytest.mark.parametrize(
        ("options", "path", "message"),
        [
            ({"tags": {"env": "prod"}}, "tags", "plain statsd has no tags"),
            ({"format": "dogstatsd", "name_tags": ("stream",)}, "name_tags", "is for format plain"),
        ],
    )
    def test_options_that_the_format_has_no_use_for_are_refused(self, options, path, message):
        with pytest.raises(ConfigError, match=message) as refusal:
            StatsdSinkConfig(**options).build()
        assert refusal.value.path == path


@pytest.mark.parametrize(("rate", "count", "waits"), [(None, 1, 0), (None, 1000, True), (5000, 1, 1)])
def test_a_limit_is_for_batches_of_several_datagrams_unless_it_is_given(monkeypatch, rate, count, waits):
    calls = []
    monkeypatch.setattr(statsd.TokenBucket, "wait", lambda bucket: calls.append(bucket))
    sink = statsd.StatsdSinkConfig(host="127.0.0.1", port=9, rate=rate).build()
    monkeypatch.setattr(sink, "_send", lambda datagram: None)
    sink.write(deliver(*[metric()] * count))
    assert len(calls) == waits if count == 1 else len(calls) > 10
