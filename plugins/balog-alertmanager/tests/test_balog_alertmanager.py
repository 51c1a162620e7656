"""The sink alertmanager: its contract, and requests to a stand-in that checks the documented form."""

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from alertmanager_server import AlertmanagerStandIn
from balog_alertmanager import AlertmanagerSink, AlertmanagerSinkConfig

from balog.common.secrets import Secret
from balog.event import Event
from balog.sinks import Delivery, SinkError
from balog.testing.contracts import SinkContract
from balog.testing.contracts.sinks import SECRET, SECRET_NAME
from tests.contracts.sink_peers import HttpPeer
from tests.stand_ins.alerts import alert_delivery, alert_event, alert_life
from tests.stand_ins.http_server import Answer, HttpStandIn, Request
from tests.waiting import wait_for


@pytest.fixture
def service():
    return AlertmanagerStandIn("t")


@pytest.fixture
def server(service):
    with HttpStandIn(service) as server:
        yield server


@pytest.fixture
def sink(server, monkeypatch):
    monkeypatch.setenv("AM_TOKEN", "t")
    monkeypatch.setattr("balog_alertmanager._RESEND", 0.1)
    adapter = AlertmanagerSinkConfig(
        url=server.url, headers={"Authorization": Secret(env="AM_TOKEN")}, labels={"team": "data"}
    ).build()
    yield adapter
    adapter.close()


class AlertmanagerPeer(HttpPeer):
    """Each event is an alert of a monitor of its own; a request with one that is refused is refused whole."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.config = AlertmanagerSinkConfig(url=self.server.url, headers={"Authorization": Secret(env=SECRET_NAME)})
        self.alertmanager = AlertmanagerStandIn(SECRET)

    def event(self, number: int, **changes: Any) -> Event:
        return alert_event(number, **changes)

    def respond(self, request: Request) -> Answer:
        return self.alertmanager(request)

    def refuse(self, event: Event) -> None:
        self.alertmanager.refused.add(event.payload["key"])

    def expected(self, batch: Sequence[Delivery]) -> dict[str, str]:
        return {event.payload["key"]: event.payload["reason"] for event, _ in batch}

    def arrived(self) -> dict[str, str]:
        assert len(self.alertmanager.posts) == len(self.alertmanager.alerts), "an event was sent twice"
        return {key: alert["annotations"]["description"] for key, alert in self.alertmanager.alerts.items()}


class TestContract(SinkContract):
    refuses = True
    has_secret = True

    @pytest.fixture
    def peer(self, tmp_path):
        peer = AlertmanagerPeer(tmp_path)
        yield peer
        peer.close()


def test_an_alert_has_labels_annotations_and_times(service, sink):
    sink.write([alert_delivery(labels={"pipeline": "tap-shop", "größe.1": "x\ny", "2nd": "b", "": "c"})])
    (alert,) = service.alerts.values()
    assert alert["labels"] == {
        "alertname": "m1",
        "key": "m1|tap-shop|orders",
        "severity": "error",
        "team": "data",
        "pipeline": "tap-shop",
        "gr__e_1": "x y",
        "_2nd": "b",
    }
    assert alert["annotations"] == {
        "summary": "firing: m1 tap-shop",
        "description": "No success for 1 h.",
        "incident": "tap-shop@2026-11-24T06:00:00Z",
        "runs": "r1",
    }
    assert alert["startsAt"] == "2026-11-24T06:00:00.000000+00:00"
    assert alert["generatorURL"] == "https://runs.example.com/r1"


def test_a_resolved_alert_ends_under_the_labels_that_it_began_with(service, sink):
    fires, resolves = alert_delivery(), alert_delivery(1, "resolved", severity="info")
    sink.write([fires])
    sink.write([resolves])
    alert = service.alerts["m1|tap-shop|orders"]
    assert alert["labels"]["severity"] == "error"
    assert alert["endsAt"] == "2026-11-24T08:00:00.000000+00:00"


def rise(severity: str, sequence: int, **changes: Any) -> Delivery:
    return alert_delivery(severity=severity, sequence=sequence, **{"previous": "firing", **changes})


@pytest.mark.parametrize("is_restarted", [False, True])
def test_an_alert_whose_severity_rises_fires_once(service, sink, is_restarted):
    """Labels identify an alert, so the one with the old severity ends, also for a process that did not send it."""
    write = again(sink) if is_restarted else sink.write
    write([rise("info", 1, previous="ok")])
    write([rise("warning", 2), rise("critical", 3)])
    assert list(service.firing["m1|tap-shop|orders"]) == ["critical"]
    write([rise("critical", 4)])
    assert list(service.firing["m1|tap-shop|orders"]) == ["critical"]
    write([rise("critical", 5, state="resolved", since="2026-11-24T08:00:00Z")])
    assert not service.firing["m1|tap-shop|orders"]


def test_a_severity_that_rises_within_a_batch_fires_once(service, sink):
    sink.write([rise("info", 1, previous="ok"), rise("critical", 2)])
    assert list(service.firing["m1|tap-shop|orders"]) == ["critical"]


def test_an_end_reaches_the_labels_of_a_process_with_another_config(service, sink):
    other = msgspec.structs.replace(sink._options, labels={}).build()
    other.write([rise("info", 1, previous="ok")])
    other.close()
    sink.write([rise("error", 2, state="resolved", since="2026-11-24T08:00:00Z")])
    assert not service.firing["m1|tap-shop|orders"]


def test_a_gateway_that_only_lets_alerts_in_gets_them(service, sink):
    service.is_readable = False
    again(sink)([rise("error", 2)])
    assert list(service.firing["m1|tap-shop|orders"]) == ["error"]


def again(sink: AlertmanagerSink) -> Callable[[list[Delivery]], None]:
    """Return a function that writes a batch as a process that begins with it."""

    def write(batch: list[Delivery]) -> None:
        restarted = sink._options.build()
        restarted.write(batch)
        restarted.close()

    return write


def test_an_alert_that_fires_is_sent_again_until_it_resolves(service, sink, server):
    """Given an Alertmanager that forgets its alerts, then it has the firing one again."""
    sink.write([alert_delivery(1), *alert_life(2)])
    first = service.alerts["m1|tap-shop|orders"]["endsAt"]
    service.alerts.clear()
    server.will(Answer(500))  # one round fails
    wait_for(lambda: service.alerts)
    assert list(service.alerts) == ["m1|tap-shop|orders"]
    assert service.alerts["m1|tap-shop|orders"]["endsAt"] > first
    sink.write([alert_delivery(1, "resolved")])
    count = len(service.posts)
    time.sleep(0.3)
    assert len(service.posts) == count


@pytest.mark.parametrize("status", [200, 202])
def test_an_answer_with_a_body_is_of_another_server(service, sink, server, status):
    server.will(Answer(status, b"<html>Sign in</html>"), Answer(204))
    with pytest.raises(SinkError, match="does not answer as Alertmanager does"):
        sink.write([alert_delivery()])
    sink.write([alert_delivery()])


def test_a_repeat_changes_nothing(service, sink):
    sink.write(alert_life())
    sink.write([alert_delivery()])
    sink.write([alert_delivery(), alert_delivery(1, "resolved")])
    assert service.posts == ["m1|tap-shop|orders"] * 2


def test_the_end_of_a_silenced_alert_is_sent(service, sink):
    sink.write([alert_delivery(), alert_delivery(1, "silenced", sequence=2)])
    sink.write([alert_delivery(1, "resolved", previous="silenced", sequence=3)])
    assert service.alerts["m1|tap-shop|orders"]["endsAt"] == "2026-11-24T08:00:00.000000+00:00"


@pytest.mark.parametrize("since", ["yesterday", "2026-11-24T06:00:00", "0001-01-01T00:00:00+23:00"])
def test_a_wrong_time_is_no_reason_to_lose_an_alert(service, sink, since):
    sink.write([alert_delivery(since=since, started=None)])
    assert len(service.alerts) == 1


def test_the_preview_shows_no_secret():
    config = AlertmanagerSinkConfig(url="http://localhost:1", headers={"Authorization": Secret(env="NOT_SET")})
    (alert,) = json.loads(config.preview(alert_event()) or "")
    assert alert["labels"]["alertname"] == "m1"
