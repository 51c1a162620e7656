"""``balog watch silence``, ``acknowledge`` and ``preview``."""

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from balog.cli import main
from balog.common.errors import ConfigError
from balog.event import Event, decode, encode
from balog.event.payload import AlertAcknowledgementPayload, AlertSilencePayload, read
from balog.topics import Message, open_topics
from balog.watch.alerts.alert_events import parse_end, silence
from tests.stand_ins.alerts import alert_event
from tests.watch.events import run

NOW = datetime(2026, 11, 24, 8, tzinfo=timezone.utc)


def call(*words: str, **options: Any) -> Any:
    return CliRunner().invoke(main, ["watch", *words], **options)


def payload_of(line: bytes) -> Any:
    return read(decode(line))


def test_a_silence_is_an_event_in_a_topic(tmp_path: Path) -> None:
    url = f"local:{tmp_path}"
    words = ("--why", "moving", "--topics", url, "--topic", "events")
    done = call("silence", "orders-*", "2h", *words)
    assert (done.exit_code, "there is no topic events yet" in done.stderr) == (2, True)
    with open_topics(url) as topics:
        topics.topic("events").publish([Message("1", b"{}")])
        topics.topic("events").ack("g", topics.topic("events").receive("g", 10, 0.0, 30.0))
    done = call("silence", "orders-*", "2h", "--why", "moving", "--topics", url, "--topic", "events")
    assert (done.exit_code, done.stdout) == (0, "")
    with open_topics(url) as topics:
        (message,) = topics.topic("events").receive("g", 10, 0.0, 30.0)
        found = payload_of(message.body)
    assert isinstance(found, AlertSilencePayload)
    assert (found.match, found.why) == ("orders-*", "moving")
    assert "@" in found.by
    left = datetime.fromisoformat(found.until) - datetime.now(timezone.utc)
    assert timedelta(minutes=119) < left <= timedelta(hours=2)


def test_an_acknowledgement_is_an_event_in_a_topic(tmp_path: Path) -> None:
    url = f"local:{tmp_path}"
    with open_topics(url) as topics:
        topics.topic("events").publish([Message("1", b"{}")])
        for more in ((), ("--for", "1d")):
            words = ("--why", "on it", "--topics", url, "--topic", "events", *more)
            assert call("acknowledge", "late|tap-shop", *words).exit_code == 0
        first, second = [payload_of(one.body) for one in topics.topic("events").peek(3)[1:]]
    assert isinstance(first, AlertAcknowledgementPayload)
    assert (first.match, first.until) == ("late|tap-shop", None)
    assert second.until is not None


PLACE = ("--topics", "local:t", "--topic", "t")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("silence", "m", "2h", *PLACE), "--why"),
        (("silence", "m", "2h", "--why", "x", "--topics", "local:t"), "Missing option '--topic'"),
        (("silence", "m", "soon", "--why", "x", *PLACE), "not a duration"),
        (("silence", "m", "2026-11-24T18:00:00", "--why", "x", *PLACE), "no time zone"),
        (("silence", "", "2h", "--why", "x", *PLACE), "1 to 500 characters"),
        (("acknowledge", "m", "--why", " ", *PLACE), "--why needs a reason"),
    ],
)
def test_wrong_use_is_one_line(words: tuple[str, ...], reason: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    done = call(*words)
    assert done.exit_code == 2
    assert reason in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("2h", NOW + timedelta(hours=2)),
        ("end", NOW),
        ("2026-11-24T18:00:00+01:00", NOW + timedelta(hours=9)),
        ("2026-11-24T18:00:00Z", NOW + timedelta(hours=10)),
    ],
)
def test_an_end_is_a_duration_or_a_time(text: str, when: datetime) -> None:
    assert parse_end(text, NOW) == when


@settings(max_examples=100, deadline=None)
@given(text=st.text(max_size=30) | st.datetimes().map(lambda when: f"{when.isoformat()}-12:00"))
def test_any_other_text_is_an_error_of_the_config(text: str) -> None:
    try:
        assert parse_end(text, NOW).tzinfo is not None
    except ConfigError:
        pass


def test_watchers_know_silences_and_acknowledgements(tmp_path: Path) -> None:
    """Given the events in files beside those of the pipeline, then the states follow."""
    (tmp_path / "monitors.yaml").write_text("monitors:\n  - name: late\n    freshness: {every: 1h}\n")

    def states(*events: Event) -> list[str]:
        every = [run(0), run(4), *events]
        (tmp_path / "events.jsonl").write_bytes(b"".join(encode(one) + b"\n" for one in every))
        done = call(str(tmp_path / "monitors.yaml"), "--source", str(tmp_path / "events.jsonl"))
        assert done.exit_code == 0, done.output
        return [json.loads(line)["payload"]["state"] for line in done.stdout.splitlines()]

    def at(event: Event, hours: float) -> Event:
        document = json.loads(encode(event))
        document["header"]["timestamp"] = (run(hours).header.timestamp).isoformat()
        return decode(json.dumps(document).encode())

    def until(hours: float) -> datetime:
        return run(hours).header.timestamp

    assert states() == ["firing", "resolved"]
    assert states(at(silence("la*", until(2), "x", "y"), 0.5)) == ["silenced", "firing", "resolved"]
    assert states(at(silence("late", until(9), "x", "y"), 1.5)) == ["firing", "silenced", "resolved"]
    ended = at(silence("late", until(2), "x", "y"), 2)
    assert states(at(silence("late", until(9), "x", "y"), 0.5), ended) == ["silenced", "firing", "resolved"]


SINKS = """
sinks:
  - {type: email, host: smtp.example.com, user: balog, password: {env: SMTP}, from: a@example.com, to: [b@example.com]}
  - {type: webhook, url: "http://localhost:9093", where: "payload.severity = 'critical'"}
  - {type: pagerduty, routing_key: {env: PAGERDUTY_KEY}}
  - {type: webhook, url: {env: HOOK}}
"""


@pytest.fixture
def sinks(tmp_path: Path) -> str:
    (tmp_path / "sinks.yaml").write_text(SINKS)
    return str(tmp_path / "sinks.yaml")


def test_a_preview_shows_what_each_sink_sends(sinks: str) -> None:
    done = call("preview", "--sinks", sinks)
    assert done.exit_code == 0, done.output
    mail, filtered, pager, hook = done.stdout.split("# ")[1:]
    assert "Subject: firing: orders-arrive tap-shop" in mail
    assert "nothing: the event does not match payload.severity = 'critical'" in filtered
    assert '"routing_key": "…"' in pager
    assert '"monitor": "orders-arrive"' in hook


def test_a_preview_of_alerts_from_a_file(sinks: str) -> None:
    events = [alert_event(1, "pending"), run(1), alert_event(2, "resolved")]
    done = call("preview", "--sinks", sinks, "--alert", "-", input=b"".join(encode(one) + b"\n" for one in events))
    assert done.exit_code == 0, done.output
    assert done.stdout.count("# email") == 2
    assert "nothing: the sink does not send the state pending" in done.stdout
    assert "Subject: resolved: m2 tap-shop / orders" in done.stdout


def test_a_preview_of_nothing_and_of_wrong_input(sinks: str, tmp_path: Path) -> None:
    assert call("preview", "--sinks", sinks, "--alert", "-", input=b"").exit_code == 1
    done = call("preview", "--sinks", sinks, "--alert", "-", input=b"\nnot\n")
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert "line 2" in done.stderr
    text = Path(sinks).read_text().replace("payload.severity = 'critical'", "payload.n =")
    (tmp_path / "wrong.yaml").write_text(text)
    done = call("preview", "--sinks", str(tmp_path / "wrong.yaml"))
    assert (done.exit_code, done.stdout) == (2, "")
    assert "wrong.yaml: $.sinks[1].where: column 11: " in done.stderr
    (tmp_path / "sinks.yaml").write_text(SINKS.replace("email,", 'email, title: "{monitr}",'))
    done = call("preview", "--sinks", sinks)
    assert done.exit_code == 2
    assert "$.sinks[0].title: has the unknown field 'monitr'; did you mean 'monitor'?" in done.stderr
