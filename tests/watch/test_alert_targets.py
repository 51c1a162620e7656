"""The targets of alerts."""

from balog.event import Event, encode
from balog.sinks.webhook import WebhookSinkConfig
from balog.watch.alerts.targets import SinkTarget
from tests.stand_ins.http_server import Answer, HttpStandIn


def test_alerts_that_a_sink_did_not_take_in_time_are_sent_by_the_next_start() -> None:
    said: list[str] = []
    target = SinkTarget([WebhookSinkConfig(url="http://127.0.0.1:1/")], None, said.append)
    alert = Event.new("balog.alert", {"cls_type": "alert"})
    target.send(1, alert, encode(alert))
    target.close(0.0)
    assert target.delivered() == 0
    assert said[-1] == "webhook 127.0.0.1:1: 1 event is not delivered yet; the next start sends them"


def test_an_alert_that_a_sink_refuses_for_good_is_reported_and_not_sent_again() -> None:
    """Given a refusal and then an answer that never comes, then only the second alert is left for the next start."""
    said: list[str] = []
    with HttpStandIn() as server:
        server.will(Answer(400), Answer(503))
        server.respond = lambda _: Answer(503)
        target = SinkTarget([WebhookSinkConfig(url=server.url)], None, said.append)
        for number in (1, 2):
            alert = Event.new("balog.alert", {"cls_type": "alert"})
            target.send(number, alert, encode(alert))
        target.close(1.0)
    assert target.delivered() == 1
    assert said[-2:] == [
        f"webhook 127.0.0.1:{server.port}: 1 event is not delivered yet; the next start sends them",
        f"webhook 127.0.0.1:{server.port}: 1 event was refused for good, and not sent again",
    ]
