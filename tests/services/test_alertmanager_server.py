"""Alerts in a real Alertmanager: fired, repeated, resolved, after its restart, and after a watcher was killed."""

import json
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from balog_alertmanager import AlertmanagerSinkConfig

from tests.services.servers.alertmanager import running_alertmanager
from tests.services.servers.process import free_port
from tests.stand_ins.alerts import alert_delivery
from tests.stand_ins.http_server import HttpStandIn
from tests.waiting import wait_for

pytestmark = pytest.mark.service

KEYS = ["m1|tap-shop|orders", "m2|tap-shop|orders"]
NOW = datetime.now(timezone.utc).isoformat()


@pytest.fixture
def hook() -> Iterator[HttpStandIn]:
    with HttpStandIn() as server:
        yield server


def notified(hook: HttpStandIn) -> list[tuple[str, str]]:
    """The notifications that people got, in order: the key and the status."""
    sent = [json.loads(request.body) for request in list(hook.requests)]
    return [(alert["labels"]["key"], alert["status"]) for one in sent for alert in one["alerts"]]


def severities(hook: HttpStandIn) -> list[tuple[str, str]]:
    """The notifications that people got, in order: the severity and the status."""
    sent = [json.loads(request.body) for request in list(hook.requests)]
    return [(alert["labels"]["severity"], alert["status"]) for one in sent for alert in one["alerts"]]


def test_alerts_fire_once_and_resolve(tmp_path: Path, hook: HttpStandIn) -> None:
    with running_alertmanager(tmp_path / "am", hook.url) as server:
        config = AlertmanagerSinkConfig(url=server.url)
        times = {"since": NOW, "started": NOW}
        for _ in range(2):  # another process sends the same again
            sink = config.build()
            sink.write([alert_delivery(number, **times) for number in (1, 2)])
            sink.close()
        active = server.active()
        assert sorted(active) == KEYS
        assert active[KEYS[0]]["labels"]["alertname"] == "m1"
        assert active[KEYS[0]]["annotations"]["description"] == "No success for 1 h."
        assert active[KEYS[0]]["generatorURL"] == "https://runs.example.com/r1"
        wait_for(lambda: len(notified(hook)) == 2)
        sink = config.build()
        sink.write([alert_delivery(1, "resolved", since=datetime.now(timezone.utc).isoformat(), started=NOW)])
        sink.close()
        wait_for(lambda: (KEYS[0], "resolved") in notified(hook))
        assert list(server.active()) == [KEYS[1]]
        assert sorted(notified(hook)) == [(KEYS[0], "firing"), (KEYS[0], "resolved"), (KEYS[1], "firing")]


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_severity_that_rises_makes_no_second_alert(tmp_path: Path, hook: HttpStandIn, is_restarted: bool) -> None:
    """The alert with the old severity ends in the notification that has the new one, and its end ends all."""
    key = 'columns{pipeline="tap-ä",stream="a\\b"}'
    with running_alertmanager(tmp_path / "am", hook.url) as server:
        config = AlertmanagerSinkConfig(url=server.url)
        sink = config.build()

        def write(severity: str, sequence: int, state: str = "firing", **changes: Any) -> None:
            nonlocal sink
            if is_restarted:
                sink.close()
                sink = config.build()
            changes = {"previous": "firing", "since": NOW, "started": NOW, **changes}
            sink.write([alert_delivery(1, state, key=key, severity=severity, sequence=sequence, **changes)])

        write("info", 1, previous="ok")
        wait_for(lambda: (key, "firing") in notified(hook))
        write("error", 2)
        assert server.active()[key]["labels"]["severity"] == "error"
        wait_for(lambda: len(notified(hook)) >= 3)
        assert sorted(severities(hook)[1:]) == [("error", "firing"), ("info", "resolved")]
        write("error", 3, "resolved", since=datetime.now(timezone.utc).isoformat())
        assert not server.active()
        wait_for(lambda: severities(hook)[-1] == ("error", "resolved"))
        assert len(severities(hook)) == 4
        sink.close()


def test_an_alertmanager_that_restarts_has_the_alert_again(
    tmp_path: Path, hook: HttpStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("balog_alertmanager._RESEND", 0.2)
    port = free_port()
    with running_alertmanager(tmp_path / "am", hook.url, port) as server:
        sink = AlertmanagerSinkConfig(url=server.url).build()
        sink.write([alert_delivery(1, since=NOW, started=NOW)])
    try:
        with running_alertmanager(tmp_path / "am", hook.url, port) as server:
            wait_for(server.active)
            assert list(server.active()) == KEYS[:1]
    finally:
        sink.close()
