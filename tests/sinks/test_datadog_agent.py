"""Metrics of the sink datadog as datagrams to an agent."""

import errno
import re
import socket

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from balog.common.secrets import Secret
from balog.sinks import SinkError
from balog.sinks.datadog import DatadogSinkConfig
from balog.sinks.measuring.datadog_agent import Agent
from tests.sinks.test_datadog import KEY, delivery, log, metric
from tests.stand_ins.batches import METRICS
from tests.stand_ins.datadog import Datadog
from tests.stand_ins.http_server import HttpStandIn


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    monkeypatch.setenv("DATADOG_KEY", KEY)
    for name in ("DD_SERVICE", "DD_ENV", "DD_VERSION", "DATADOG_TAGS", "DD_AGENT_HOST", "DD_ENTITY_ID"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def agent():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.settimeout(5)
        yield listener


@pytest.fixture
def build(agent, opened):
    place = Agent(host="127.0.0.1", port=agent.getsockname()[1])
    return lambda **options: opened(DatadogSinkConfig(agent=place, **options))


def received(agent, count):
    lines = []
    while len(lines) < count:
        datagram = agent.recv(65536)
        assert len(datagram) <= 1432
        lines += datagram.decode().splitlines()
    return lines


def test_an_agent_says_nothing(agent, build):
    build().probe()


@pytest.mark.parametrize(
    ("place", "says"),
    [({"host": "no-such-host.invalid"}, "cannot be resolved"), ({"socket": "/no/such.socket"}, "No such file")],
)
def test_an_agent_that_cannot_be_is_told(place, says):
    sink = DatadogSinkConfig(agent=Agent(**place)).build()
    with pytest.raises(SinkError, match=says):
        sink.probe()


def test_metrics_go_as_datagrams(agent, build):
    build(tags={"env": "prod"}).write(
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


def test_many_fill_datagrams(agent, build):
    build().write([metric("counter", n) for n in range(300)])
    assert [float(re.search(r":([\d.]+)\|", line)[1]) for line in received(agent, 300)] == list(range(300))


def test_metrics_by_the_agent_and_logs_over_https(agent, build):
    account = Datadog(KEY)
    with HttpStandIn(account) as server:
        build(api_key=Secret(env="DATADOG_KEY"), url=server.url).write([metric("timer", 1), log()])
    assert received(agent, 1) == ["rows:1.0|d|#service:tap-stripe"]
    assert (len(account.logs), account.points) == (1, {})


def test_a_unix_socket(tmp_path):
    path = str(tmp_path / "dsd.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(path)
        sink = DatadogSinkConfig(agent=Agent(socket=path)).build()
        sink.write([metric("counter", 1)])
        assert listener.recv(1000) == b"rows:1.0|c|#service:tap-stripe\n"
        sink.close()


def test_an_agent_that_is_away_is_told_in_one_line_and_comes_back(agent, build, capfd):
    port = agent.getsockname()[1]
    sink = build()
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


def test_only_what_did_not_go_out_comes_again(agent, build, monkeypatch):
    sink = build()
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


def test_a_name_that_nobody_knows():
    sink = DatadogSinkConfig(agent=Agent(host="nobody.invalid")).build()
    with pytest.raises(SinkError, match=r"nobody\.invalid:8125: cannot be resolved") as caught:
        sink.write([metric("counter", 1)])
    assert caught.value.remaining == [0]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(METRICS, min_size=1, max_size=5), st.dictionaries(st.text(min_size=1), st.text(), max_size=2))
def test_any_metric_is_a_line_that_an_agent_can_read(agent, build, found, tags):
    sink = build(tags=tags)
    sink.write([delivery(payload) for payload in found])
    sink.close()
    for payload, line in zip(found, received(agent, len(found))):
        value, kind, listed = re.fullmatch(r"[A-Za-z][\w.]*:([^|:]+)\|([cgd])\|#(.*)", line).groups()
        assert float(value) == payload.value
        assert kind == {"counter": "c", "gauge": "g", "timer": "d"}[payload.type]
        assert all(re.fullmatch(r"[^\W\d_][^|#,\n]*", tag) for tag in listed.split(","))
