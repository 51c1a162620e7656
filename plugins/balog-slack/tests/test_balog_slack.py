"""The Slack sink keeps the contract of sinks, and takes Slack's answers as Slack documents them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import pytest
from balog_slack import MAX_TEXT, SlackSink, SlackSinkConfig, line_of
from slack_server import SlackServer

from balog.common.secrets import Secret
from balog.event import Event, encode
from balog.sinks import Delivery, SinkError
from balog.testing.contracts import SinkContract, SinkPeer
from balog.testing.contracts.sinks import SECRET, SECRET_NAME


class SlackPeer(SinkPeer):
    """A channel; each event is a line of its messages."""

    def __init__(self) -> None:
        self.server = SlackServer()
        self.config = SlackSinkConfig(webhook=Secret(env=SECRET_NAME))
        self.place = f"127.0.0.1:{self.server.port}"
        self.is_up = True

    def event(self, number: int, **changes: Any) -> Event:
        return Event.new("a.b", {"cls_type": "log", "message": f"row {number}"}, **changes)

    def expected(self, batch: Sequence[Delivery]) -> Mapping[str, Any]:
        return {line_of(event): 1 for event, _ in batch}

    def arrived(self) -> Mapping[str, Any]:
        lines = [line for text in self.server.texts for line in text.splitlines()]
        assert len(lines) == len(set(lines)), "an event was sent twice"
        return dict.fromkeys(lines, 1)

    def traces(self) -> Sequence[object]:
        return range(self.server.requests)

    def fail(self) -> None:
        self.is_up = False
        self.server.stop()

    def mend(self) -> None:
        self.is_up = True
        self.server.start()

    def refuse(self, event: Event) -> None:
        self.server.refused.append(line_of(event))

    def close(self) -> None:
        if self.is_up:
            self.server.stop()


@pytest.fixture
def peer(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlackPeer]:
    peer = SlackPeer()
    monkeypatch.setenv(SECRET_NAME, peer.server.url + SECRET)
    yield peer
    peer.close()


class TestSlack(SinkContract):
    refuses: ClassVar[bool] = True
    has_secret: ClassVar[bool] = True

    @pytest.fixture
    def peer(self, environment: None, peer: SlackPeer) -> SlackPeer:
        """The channel, whose webhook's URL is the secret of the contract."""
        return peer


@pytest.fixture
def sink(peer: SlackPeer) -> Iterator[SlackSink]:
    sink = peer.config.build()
    yield sink
    sink.close()


def deliveries(*messages: str) -> list[Delivery]:
    events = [Event.new("tap.sync", {"cls_type": "log", "message": text}, level="ERROR") for text in messages]
    return [Delivery(event, encode(event)) for event in events]


def test_a_batch_is_one_message(peer: SlackPeer, sink: SlackSink) -> None:
    sink.write(deliveries("no rows", "a < b & c"))
    assert peer.server.texts == ["ERROR tap.sync: no rows\nERROR tap.sync: a &lt; b &amp; c"]


def test_a_long_batch_is_several_messages_of_the_length_that_slack_shows(peer: SlackPeer, sink: SlackSink) -> None:
    batch = deliveries(*(f"{number} " + "<" * 3000 for number in range(20)))
    sink.write(batch)
    assert len(peer.server.texts) > 1
    assert max(map(len, peer.server.texts)) <= MAX_TEXT
    assert "\n".join(peer.server.texts).splitlines() == [line_of(event) for event, _ in batch]


@pytest.mark.parametrize(
    ("status", "body", "is_retryable"),
    [
        (400, "invalid_payload", False),
        (403, "action_prohibited", True),
        (404, "channel_not_found", True),
        (410, "channel_is_archived", True),
        (429, "", True),
        (500, "rollup_error", True),
    ],
)
def test_an_error_of_slack(peer: SlackPeer, sink: SlackSink, status: int, body: str, is_retryable: bool) -> None:
    headers = {"Retry-After": "30"} if status == 429 else {}
    peer.server.answers.append((status, body, headers))
    with pytest.raises(SinkError, match=f"{status} .*{body}") as caught:
        sink.write(deliveries("no rows"))
    assert (caught.value.retryable, caught.value.retry_after) == (is_retryable, 30 if headers else None)
    assert SECRET not in str(caught.value)
    sink.write(deliveries("no rows"))
    assert peer.server.texts == ["ERROR tap.sync: no rows"]


def test_an_answer_of_another_server_is_an_error(peer: SlackPeer, sink: SlackSink) -> None:
    peer.server.answers.append((200, "<html>Log in</html>", {}))
    with pytest.raises(SinkError, match="is the URL that of an incoming webhook"):
        sink.write(deliveries("no rows"))


ALERT = {
    "cls_type": "alert",
    "monitor": "late",
    "kind": "freshness",
    "state": "firing",
    "key": "late|tap-shop",
    "severity": "error",
    "labels": {"pipeline": "tap-shop"},
    "value": 4500,
    "expected": {"low": None, "high": 3600},
    "reason": "No success <!channel> & so on.",
    "since": "2026-11-24T06:00:00Z",
    "started": "2026-11-24T06:00:00Z",
    "evidence": {"runs": ["r1"], "link": "https://runs.example.com/r1"},
    "sequence": 1,
}


def alert(**changes: Any) -> Delivery:
    event = Event.new("balog.alert", {**ALERT, **changes}, level="ERROR")
    return Delivery(event, encode(event))


def test_an_alert_is_a_message_of_blocks(peer: SlackPeer, sink: SlackSink) -> None:
    sink.write([alert()])
    (message,) = peer.server.messages
    assert message["text"] == "firing: late tap-shop"
    header, text, facts = message["blocks"]
    assert header["text"]["text"] == "firing: late tap-shop"
    assert text["text"]["text"].splitlines() == [
        "No success &lt;!channel&gt; &amp; so on.",
        "<https://runs.example.com/r1|Evidence>",
    ]
    assert [field["text"].replace("\n", " ") for field in facts["fields"]] == [
        "*Severity* error",
        "*Value* 4500",
        "*Expected* at most 3600",
        "*Started* 2026-11-24T06:00:00Z",
        "*Runs* r1",
    ]


def test_alerts_and_lines_keep_their_order_and_repeats_are_dropped(peer: SlackPeer, sink: SlackSink) -> None:
    end = alert(state="resolved", sequence=2)
    sink.write(
        [*deliveries("a"), alert(), alert(state="pending", sequence=2), *deliveries("b", "c"), alert(), end, end]
    )
    firsts = [text.splitlines()[0].rpartition(": ")[2] for text in peer.server.texts]
    assert firsts == ["a", "late tap-shop", "b", "late tap-shop"]


@pytest.mark.parametrize("text", ["<" * 10_000, "&" * 160, "😀" * 5000, "a\nb", "", "|" * 4000])
def test_any_alert_keeps_to_the_limits(peer: SlackPeer, sink: SlackSink, text: str) -> None:
    link = "https://example.com/" + text
    sink.write([alert(monitor=text, reason=text, value=text, evidence={"runs": [text] * 50, "link": link})])
    assert len(peer.server.messages) == 1


def test_an_alert_that_is_refused_blocks_no_other(peer: SlackPeer, sink: SlackSink) -> None:
    peer.server.refused.append("firing: bad tap-shop")
    with pytest.raises(SinkError) as caught:
        sink.write([alert(monitor="bad", key="bad"), alert()])
    assert list(caught.value.rejected) == [0]
    assert peer.server.texts == ["firing: late tap-shop"]


def test_the_config_shows_no_secret(peer: SlackPeer) -> None:
    assert SECRET not in json.dumps([repr(peer.config), peer.config.name])
