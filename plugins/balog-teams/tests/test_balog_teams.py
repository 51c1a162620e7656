"""The Teams sink keeps the contract of sinks, and its cards are what Teams documents."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import pytest
from balog_teams import TeamsSinkConfig
from teams_server import TeamsServer, title_of

from balog.common.secrets import Secret
from balog.event import Event, encode
from balog.sinks import Delivery, SinkError
from balog.testing.contracts import SinkContract, SinkPeer
from balog.testing.contracts.sinks import SECRET, SECRET_NAME

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
    "reason": "No **success**.",
    "since": "2026-11-24T06:00:00Z",
    "started": "2026-11-24T06:00:00Z",
    "evidence": {"runs": ["r_1"], "link": "https://runs.example.com/r1"},
    "sequence": 1,
}


def alert(header: dict[str, Any] | None = None, **changes: Any) -> Delivery:
    event = Event.new("balog.alert", {**ALERT, **changes}, level="ERROR", **(header or {}))
    return Delivery(event, encode(event))


class TeamsPeer(SinkPeer):
    """A channel; each event is a card."""

    def __init__(self) -> None:
        self.server = TeamsServer()
        self.config = TeamsSinkConfig(webhook=Secret(env=SECRET_NAME))
        self.place = f"127.0.0.1:{self.server.port}"
        self.is_up = True

    def event(self, number: int, **changes: Any) -> Event:
        return alert(changes, monitor=f"m{number}", key=f"m{number}").event

    def expected(self, batch: Sequence[Delivery]) -> Mapping[str, Any]:
        return {f"firing: {event.payload['monitor']} tap-shop": 1 for event, _ in batch}

    def arrived(self) -> Mapping[str, Any]:
        titles = [title_of(card) for card in self.server.cards]
        assert len(titles) == len(set(titles)), "an event was sent twice"
        return dict.fromkeys(titles, 1)

    def traces(self) -> Sequence[object]:
        return range(self.server.requests)

    def fail(self) -> None:
        self.is_up = False
        self.server.stop()

    def mend(self) -> None:
        self.is_up = True
        self.server.start()

    def refuse(self, event: Event) -> None:
        self.server.refused.append(f"firing: {event.payload['monitor']} tap-shop")

    def close(self) -> None:
        if self.is_up:
            self.server.stop()


@pytest.fixture
def peer(monkeypatch: pytest.MonkeyPatch) -> Iterator[TeamsPeer]:
    peer = TeamsPeer()
    monkeypatch.setenv(SECRET_NAME, peer.server.url + SECRET)
    yield peer
    peer.close()


class TestTeams(SinkContract):
    refuses: ClassVar[bool] = True
    has_secret: ClassVar[bool] = True

    @pytest.fixture
    def peer(self, environment: None, peer: TeamsPeer) -> TeamsPeer:
        """The channel, whose webhook's URL is the secret of the contract."""
        return peer


def test_a_card_has_a_title_a_text_facts_and_a_button(peer: TeamsPeer) -> None:
    sink = peer.config.build()
    sink.write([alert(), alert(state="resolved", sequence=2), alert()])
    sink.close()
    first, second = peer.server.cards
    heading, text, facts = first["body"]
    assert heading["inlines"][0]["color"] == "Attention"
    assert second["body"][0]["inlines"][0]["color"] == "Good"
    assert text["inlines"][0]["text"] == "No **success**."
    assert facts["facts"][2:] == [
        {"title": "Expected", "value": "at most 3600"},
        {"title": "Started", "value": "2026\\-11\\-24T06:00:00Z"},
        {"title": "Runs", "value": "r\\_1"},
    ]
    assert first["actions"] == [{"type": "Action.OpenUrl", "title": "Evidence", "url": "https://runs.example.com/r1"}]


@pytest.mark.parametrize("text", ["*" * 10_000, "😀" * 5000, "a\nb", "", "ü" * 4000])
def test_any_alert_keeps_to_the_limits(peer: TeamsPeer, text: str) -> None:
    link = "https://example.com/" + text
    sink = peer.config.build()
    sink.write([alert(monitor=text, reason=text, value=text, evidence={"runs": [text] * 50, "link": link})])
    sink.close()
    assert len(peer.server.cards) == 1


@pytest.mark.parametrize(("status", "is_retryable"), [(400, False), (401, True), (404, True), (429, True), (502, True)])
def test_an_error_of_teams(peer: TeamsPeer, status: int, is_retryable: bool) -> None:
    peer.server.answers.append(status)
    sink = peer.config.build()
    with pytest.raises(SinkError, match=str(status)) as caught:
        sink.write([alert()])
    assert caught.value.retryable is is_retryable
    assert SECRET not in str(caught.value)
    sink.write([alert()])
    sink.close()
    assert len(peer.server.cards) == 1


def test_the_preview_is_the_message_without_the_url() -> None:
    text = TeamsSinkConfig(webhook=Secret(env="NOT_SET")).preview(alert().event)
    assert json.loads(text or "")["attachments"][0]["content"]["body"]
