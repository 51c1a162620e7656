"""No text of an error that leaves a process or is stored has a secret: handlers, sinks, commands."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from balog.broker.broker import say
from balog.broker.sidecar import sidecar
from balog.cli import main
from balog.cli.shared.output import print_errors, reporter
from balog.common.errors import BalogError, ConfigError, SinkError, complain, redact_error
from balog.consumers import Consumer, ConsumerHub, Engine, Halt, Reject
from balog.delivery.attempt import attempt
from balog.delivery.notices import ThrottledNotices
from balog.event import Event, encode
from balog.sinks import Delivery
from balog.topics import Message, Topics, open_topics
from balog.topics.local import LocalTopics
from balog.topics.memory import MemoryTopics

SECRETS = ("hunter2pw", "abcDEF123456ghiJKL789", "Zx9qKw7Lm2Vt")
TEXT = f"postgres://svc:{SECRETS[0]}@db/x refused, Authorization: Bearer {SECRETS[1]}, password={SECRETS[2]}"


def assert_redacted(text: str) -> None:
    assert [secret for secret in SECRETS if secret in text] == []
    assert "refused" in text


@pytest.fixture(params=["memory", "local"])
def topics(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Topics]:
    if request.param == "memory":
        yield MemoryTopics()
    else:
        with LocalTopics(tmp_path / "topics") as home:
            yield home


@pytest.mark.parametrize("kind", [ConnectionError, Reject])
def test_a_dead_letter_the_ledger_and_the_log_have_no_secrets(
    topics: Topics,
    kind: type[Exception],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def fail(settings: Any, event: Event) -> None:
        try:
            raise ValueError(TEXT)
        except ValueError as error:
            raise kind(TEXT) from error

    event = Event.new("tests", {})
    hub = ConsumerHub()
    hub.add(Consumer(fail, "orders", name="handler"))
    topics.topic("orders").publish([Message(event.header.id, encode(event))])
    Engine(hub, topics, max_attempts=1).run(until_empty=True)
    (letter,) = topics.topic("orders").dead_letters("balog")

    assert_redacted(letter.reason)
    assert_redacted(letter.traceback)
    assert_redacted(caplog.text)
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert [secret for secret in SECRETS if secret.encode() in stored] == []


def test_each_consumer_s_reason_stays_beside_an_unclosed_key_and_under_any_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def fail(settings: Any, event: Event) -> None:
        raise ValueError("-----BEGIN PRIVATE KEY-----\nhunter2pw")

    def differ(settings: Any, event: Event) -> None:
        raise ValueError("signature differs")

    topics, event, hub = MemoryTopics(), Event.new("tests", {}), ConsumerHub()
    hub.add(Consumer(fail, "orders", name="first"))
    hub.add(Consumer(differ, "orders", name="rotate_token"))
    topics.topic("orders").publish([Message(event.header.id, encode(event))])
    Engine(hub, topics, max_attempts=1).run(until_empty=True)
    (letter,) = topics.topic("orders").dead_letters("balog")
    assert "rotate_token: ValueError: signature differs" in letter.reason
    assert "hunter2pw" not in letter.reason


def test_the_line_of_a_halt_has_no_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "halting.py").write_text(
        "from balog.consumers import Halt, consumer_config\n"
        f"@consumer_config(topic='orders')\ndef handle(settings, event):\n    raise Halt({TEXT!r})\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    event = Event.new("tests", {})
    with open_topics(f"local:{tmp_path / 'topics'}") as home:
        home.topic("orders").publish([Message(event.header.id, encode(event))])
    done = CliRunner().invoke(main, ["consume", "halting", "--topics", f"local:{tmp_path / 'topics'}", "--until-empty"])
    assert done.exit_code == Halt.exit_code == 2
    assert_redacted(done.output)


def test_the_error_of_a_sink_has_no_secrets() -> None:
    def refuse(batch: Any) -> None:
        raise SinkError(TEXT, retryable=False, rejected={0: TEXT})

    def fail(batch: Any) -> None:
        raise OSError(TEXT)

    lines: list[str] = []
    for write in (refuse, fail):
        outcome = attempt(write, [Delivery(Event.new("a", {}), b"") for _ in range(3)])
        assert len(outcome.dead) == 3
        for reason in outcome.dead.values():
            assert_redacted(reason)
        assert_redacted(str(outcome.error))
    ThrottledNotices("sink", lines.append).send(TEXT)
    assert_redacted(lines[0])


def test_lines_of_errors_on_stderr_have_no_secrets(capsys: pytest.CaptureFixture[str]) -> None:
    for write in (
        complain,
        say,
        sidecar._say,
        reporter("balog consume"),
        lambda text: print_errors("balog check", BalogError(text)),
        lambda text: print_errors("balog check", ConfigError(text, "config.yaml", "$.sinks[0].password")),
    ):
        write(TEXT)
        line = capsys.readouterr().err
        assert_redacted(line)
    assert line.startswith("balog check: config.yaml: $.sinks[0].password: postgres://")


def test_a_path_in_a_config_is_no_secret(capsys: pytest.CaptureFixture[str]) -> None:
    print_errors("balog check", ConfigError("unknown option", "config.yaml", "$.password"))
    assert capsys.readouterr().err == "balog check: config.yaml: $.password: unknown option\n"


def test_the_text_of_another_error_stays() -> None:
    text = 'psycopg2.errors.UndefinedTable: relation "tokens" does not exist, 3 of 5 sessions'
    assert redact_error(text) is text
