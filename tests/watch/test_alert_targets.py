"""The targets of alerts."""

from balog.event import Event, encode
from balog.sinks import WebhookSinkConfig
from balog.watch.targets import SinkTarget


def test_alerts_that_a_sink_did_not_take_in_time_are_sent_by_the_next_start() -> None:
    said: list[str] = []
    target = SinkTarget([WebhookSinkConfig(url="http://127.0.0.1:1/")], None, said.append)
    alert = Event.new("balog.alert", {"cls_type": "alert"})
    target.send(1, alert, encode(alert))
    target.close(0.0)
    assert target.delivered() == 0
    assert said[-1] == "webhook 127.0.0.1:1: 1 event is not delivered yet; the next start sends them"
