"""Alerts by webhook, PagerDuty and e-mail while the watcher is killed: none is lost, and a repeat can be recognized."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stand_ins.http_server import Answer, HttpStandIn
from tests.stand_ins.pagerduty import ROUTING_KEY, PagerDuty
from tests.stand_ins.smtp_server import SmtpServer
from tests.waiting import wait_for
from tests.watch.processes import WatcherProcess

PIPELINES = ["tap-a", "tap-b"]


class Receivers:
    """A webhook's receiver, PagerDuty and a mail server, which know the pipeline and the id of each alert."""

    def __init__(self, folder: Path) -> None:
        self.pages = PagerDuty()
        self.hook, self.pager = HttpStandIn(), HttpStandIn(self.pages)
        self.hook.start()
        self.pager.start()
        self.mail = SmtpServer(folder)

    def taken(self) -> dict[str, list[tuple[str, str]]]:
        """Return what each receiver took, in order."""
        hooks = [(json.loads(one.body), one.headers["webhook-id"]) for one in list(self.hook.requests)]
        return {
            "webhook": [(event["payload"]["labels"]["pipeline"], name) for event, name in hooks],
            "pagerduty": [(one["payload"]["component"], one["dedup_key"]) for one in list(self.pages.accepted)],
            "email": [(str(one["Subject"]).split()[2], str(one["Message-ID"])) for one in list(self.mail.messages)],
        }

    def have_all(self) -> bool:
        return all(sorted({pipeline for pipeline, _ in one}) == PIPELINES for one in self.taken().values())


@pytest.fixture
def receivers(tmp_path: Path) -> Iterator[Receivers]:
    made = Receivers(tmp_path)
    yield made
    made.hook.stop()
    made.pager.stop()
    made.mail.stop()


def test_a_watcher_that_is_killed_around_its_deliveries_loses_no_alert(tmp_path: Path, receivers: Receivers) -> None:
    """Given kill -9 before, during and after each delivery, then each alert comes, and its repeats have the same id."""
    retry = {"longest": 0.2}
    mail = {"host": "localhost", "port": receivers.mail.port, "ca_file": receivers.mail.ca_file}
    sinks = [
        {"type": "webhook", "url": receivers.hook.url, "retry": retry},
        {"type": "pagerduty", "url": receivers.pager.url, "routing_key": {"env": "PAGERDUTY_KEY"}, "retry": retry},
        {"type": "email", **mail, "from": "balog@example.com", "to": ["ops@example.com"], "retry": retry},
    ]
    watcher = WatcherProcess(tmp_path, {"sinks": sinks}, {"PAGERDUTY_KEY": ROUTING_KEY})
    for server in (receivers.hook, receivers.pager, receivers.mail):
        server.stop()
    watcher.kill_when(lambda stdout: [stdout.readline() for _ in PIPELINES])  # both fire, and nobody takes them
    for server in (receivers.hook, receivers.pager, receivers.mail):
        server.start()
    for server in (receivers.hook, receivers.pager):
        server.will(Answer(trouble="hang"))
    watcher.kill_when(lambda _: wait_for(lambda: receivers.hook.requests and receivers.pager.requests))  # no answer yet
    watcher.kill_when(lambda _: wait_for(receivers.have_all))  # taken, and perhaps not marked
    watcher.run_until_empty()
    taken = receivers.taken()
    assert receivers.have_all()
    for received in taken.values():
        assert len(set(received)) == len(PIPELINES)  # an id an alert
    watcher.run_until_empty()
    assert receivers.taken() == taken  # what is marked is not sent again
