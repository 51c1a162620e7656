"""``balog consume`` as a process: what it prints where, and its exit codes."""

import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from balog.consumers.ledgers.factory import open_ledger
from balog.event import Event, decode, encode
from balog.event.payload import LogPayload, MetricPayload, RunPayload
from balog.topics import Message, Topic
from balog.topics.local import LocalTopics

Consume = Call = Callable[..., "subprocess.CompletedProcess[str]"]

HANDLERS = """
from balog.consumers import consumer_config

@consumer_config(topic="orders{env}", retries=1)
def show(settings, event):
    if event.payload.get("fail"):
        raise ValueError("asked to fail")
    print(event.payload["n"], settings)
"""


SLOW = """
import time
from balog.consumers import Engine, consumer_config

stop = Engine.stop
Engine.stop = lambda engine: (stop(engine), print("told to stop"))

@consumer_config(topic="orders")
def sleep(settings, event):
    print("begun")
    time.sleep(100)
"""


@pytest.fixture
def team(tmp_path: Path) -> Path:
    team = tmp_path / "team"
    team.mkdir()
    (team / "__init__.py").write_text(HANDLERS)
    return team


@pytest.fixture
def consume(tmp_path: Path, team: Path) -> Consume:
    def consume(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(command(*arguments), cwd=tmp_path, capture_output=True, text=True, timeout=120)

    return consume


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "balog", "consume", *arguments]


class TestConsume:
    def test_handlers_print_to_stdout_and_the_summary_goes_to_stderr(self, consume: Consume, publish) -> None:
        publish({"n": 1}, {"n": 2})
        done = consume("team", "--topics", "local:topics", "--until-empty", "--set", "env=", "--set", "a=b=c")
        assert done.stdout == "1 {'env': '', 'a': 'b=c'}\n2 {'env': '', 'a': 'b=c'}\n"
        assert done.stderr == (
            "balog consume: 2 deliveries: 2 succeeded, 0 duplicates, 0 unwanted, 0 failed attempts, 0 dead-lettered\n"
        )
        assert done.returncode == 0

    def test_dead_letters_make_it_fail_with_a_line_an_attempt(self, consume: Consume, orders: Topic, publish) -> None:
        failing, _ = publish({"fail": True}, {"n": 1})
        done = consume("team", "--topics", "local:topics", "--until-empty", "--set", "env=")
        assert done.returncode == 1
        assert done.stdout == "1 {'env': ''}\n"
        assert re.sub(r"again in 0(\.\d+)? s", "again in 0.1 s", done.stderr).splitlines() == [
            f"balog consume: team.show failed on {failing} in orders, attempt 1 of 2, again in 0.1 s: "
            "ValueError: asked to fail",
            f"balog consume: team.show failed on {failing} in orders, attempt 2 of 2, dead-lettered: "
            "ValueError: asked to fail",
            "balog consume: 3 deliveries: 1 succeeded, 0 duplicates, 0 unwanted, 2 failed attempts, 1 dead-lettered",
        ]
        assert [dead.id for dead in orders.dead_letters("balog")] == [failing]

    def test_it_waits_for_the_topic_and_stops_gently_when_asked(
        self, tmp_path: Path, consume: Consume, publish
    ) -> None:
        with subprocess.Popen(
            command("team", "--topics", "local:topics", "--set", "env="),
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            assert process.stderr.readline() == "balog consume: waiting for topic orders\n"
            publish({"n": 1})
            assert process.stdout.readline() == "1 {'env': ''}\n"
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=60) == 0
            assert process.stderr.read().startswith("balog consume: 1 delivery: 1 succeeded")

    def test_the_second_signal_ends_it_at_once_and_the_event_comes_again(
        self, tmp_path: Path, consume: Consume, orders: Topic, publish
    ) -> None:
        (tmp_path / "team" / "__init__.py").write_text(SLOW)
        (id,) = publish({})
        with subprocess.Popen(
            command("team", "--topics", "local:topics", "--lease", "1"), cwd=tmp_path, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "begun\n"
            process.send_signal(signal.SIGTERM)
            assert process.stdout.readline() == "told to stop\n"
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=60) == 128 + signal.SIGTERM
        assert [(message.id, message.attempts) for message in orders.receive("balog", wait=30)] == [(id, 2)]

    def test_a_closed_stdout_is_no_fault_of_the_events(
        self, tmp_path: Path, consume: Consume, orders: Topic, publish
    ) -> None:
        publish({"n": 1}, {"n": 2})
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run(
            command("team", "--topics", "local:topics", "--until-empty", "--set", "env="),
            cwd=tmp_path,
            stdout=write,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
        os.close(write)
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1] == (
            "balog consume: standard output was closed; what was not handled stays in its topic"
        )
        assert "Traceback" not in done.stderr
        assert [message.attempts for message in orders.receive("balog")] == [1, 1]


MANY = """
import asyncio, threading
from balog.consumers import consumer_config

together = threading.Barrier(4, timeout=60)

@consumer_config(topic="orders")
def meet(settings, event):
    together.wait()

@consumer_config(topic="orders")
async def wait(settings, event):
    await asyncio.sleep(0)
    print("waited", flush=True)
"""

LOGS = """
import balog
from balog.consumers import consumer_config
from balog.consumers.outcomes import Reject
log = balog.get_logger("team")

@consumer_config(topic="orders")
def tell(settings, event):
    log.info("told", n=event.payload["n"])
    if event.payload["n"] == 2:
        raise Reject("two is too many")
"""


class TestOptions:
    def test_concurrency_is_the_number_of_handlers_at_once(self, call: Call, team: Path, publish) -> None:
        (team / "__init__.py").write_text(MANY)
        publish({}, {}, {}, {})
        done = call("consume", "team", "--topics", "local:topics", "--until-empty", "--concurrency", "4")
        assert done.returncode == 0, done.stderr
        assert done.stdout == "waited\n" * 4

    def test_the_ledger_is_where_it_was_asked_for(self, tmp_path: Path, call: Call, team: Path, publish) -> None:
        (id,) = publish({"fail": True})
        at = f"sqlite:{tmp_path}/ledger.sqlite"
        call("consume", "team", "--topics", "local:topics", "--until-empty", "--set", "env=", "--ledger", at)
        with closing(open_ledger(at)) as ledger:
            assert list(ledger.known("balog", [id])[id]) == ["orders/team.show"]

    def test_who_watches_sees_metrics_and_whether_it_is_ready(self, tmp_path: Path, publish, wait_for) -> None:
        (tmp_path / "team").mkdir()
        (tmp_path / "team" / "__init__.py").write_text(HANDLERS)
        publish({"n": 1})
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        arguments = ("team", "--topics", "local:topics", "--set", "env=", "--listen", f":{port}")
        with subprocess.Popen(command(*arguments), cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            try:
                assert process.stdout.readline() == "1 {'env': ''}\n"
                assert '"ready"' in get(port, "/ready")
                assert '"alive"' in get(port, "/health")
                counted = re.compile(r'^balog_consumer_succeeded_total\{(?=.*consumer="team.show").*\} 1\.0$', re.M)
                wait_for(lambda: counted.search(get(port, "/metrics")))  # a success counts once it is settled
                process.terminate()
                assert process.wait(timeout=60) == 0
            finally:
                process.kill()


class TestLogging:
    def test_with_nothing_configured_all_of_it_is_lines_on_stderr(
        self, tmp_path: Path, consume: Consume, publish, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("BALOG_OUTPUT", "BALOG_CONFIG"):
            monkeypatch.delenv(name, raising=False)
        (tmp_path / "team" / "__init__.py").write_text(LOGS)
        _, two = publish({"n": 1}, {"n": 2})
        done = consume("team", "--topics", "local:topics", "--until-empty")
        assert (done.returncode, done.stdout) == (1, "")
        told, again, failed, summary = done.stderr.splitlines()
        assert "told" in told
        assert "n=1" in told
        assert "n=2" in again
        assert failed.startswith(f"balog consume: team.tell failed on {two} in orders, attempt 1 of 5, dead-lettered: ")
        assert failed.endswith("two is too many")
        assert (
            summary
            == "balog consume: 2 deliveries: 1 succeeded, 0 duplicates, 0 unwanted, 1 failed attempt, 1 dead-lettered"
        )

    def test_where_logging_is_configured_failures_are_events_there_too(
        self, tmp_path: Path, consume: Consume, publish, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("BALOG_OUTPUT", f"local:{tmp_path}/topics?topic=orders")
        (tmp_path / "team" / "__init__.py").write_text(LOGS)
        _, two = publish({"n": 1}, {"n": 2})
        done = consume("team", "--topics", "local:topics", "--until-empty")
        assert done.returncode == 1
        assert done.stderr.startswith("balog consume: ")
        assert len(done.stderr.splitlines()) == 1
        with LocalTopics(tmp_path / "topics") as home:
            bodies = [decode(message.body) for message in home.topic("orders").peek(100)]
        (failure,) = [event for event in bodies if event.cls_type == "consumer_failure"]
        assert (failure.payload["event"], failure.payload["outcome"]) == (two, "dead")
        told = [event for event in bodies if event.cls_type == "log"]
        assert [event.header.context["caused_by"]["consumers"] for event in told] == [["team.tell"], ["team.tell"]]

    def test_a_package_that_configures_logging_itself_has_its_way(
        self, tmp_path: Path, consume: Consume, publish, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("BALOG_OUTPUT", raising=False)
        own = LOGS.replace("import balog\n", "import balog\nbalog.configure('file:own.jsonl')\n")
        (tmp_path / "team" / "__init__.py").write_text(own)
        publish({"n": 1})
        done = consume("team", "--topics", "local:topics", "--until-empty")
        assert len(done.stderr.splitlines()) == 1
        assert b"told" in (tmp_path / "own.jsonl").read_bytes()


def get(port: int, page: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{page}", timeout=60) as answer:
        return str(answer.read(), "utf-8")


class TestWrongUse:
    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (("nope", "--topics", "local:topics"), "no package nope"),
            (("./shop/till.py", "--topics", "local:topics"), "give the dotted name of the module, such as shop.till"),
            (("json", "--topics", "local:topics"), "json has no consumers"),
            (("team", "--topics", "paper:orders"), "'paper:orders': no topics of kind 'paper'"),
            (("team", "--topics", "topics"), "'topics' is not a URL of topics"),
            (("team", "--topics", "local:topics"), "needs the setting 'env'"),
            (("team", "--topics", "local:topics", "--set", "env"), "--set 'env': expected KEY=VALUE"),
            (("team", "--topics", "local:topics", "--set", "env=/../x"), "topic name 'orders/../x' can't be used"),
            (("team", "--topics", "local:topics", "--set", "env=", "--group", "a/b"), "group name 'a/b'"),
            (("team",), "Missing option '--topics'"),
            ((), "Missing argument 'PACKAGE'"),
            (("team", "--topics", "local:topics", "--lease", "0"), "--lease"),
            (("team", "--topics", "local:topics", "--concurrency", "0"), "--concurrency"),
            (("team", "--topics", "local:topics", "--set", "env=", "--ledger", "paper:a"), "ledger"),
            (("team", "--topics", "local:topics", "--set", "env=", "--listen", "here"), "cannot listen at 'here'"),
        ],
    )
    def test_it_is_said_in_one_line_with_exit_code_2(
        self, tmp_path: Path, team: Path, call: Call, arguments: tuple[str, ...], said: str
    ) -> None:
        done = call("consume", *arguments)
        assert done.returncode == 2
        assert said in done.stderr.splitlines()[-1]
        assert done.stdout == ""
        assert not (tmp_path / "topics").exists()

    def test_a_broken_package_is_a_failure_that_names_module_and_cause(self, team: Path, call: Call) -> None:
        (team / "broken.py").write_text("1 / 0")
        done = call("consume", "team", "--topics", "local:topics")
        assert done.returncode == 1
        assert done.stderr == "balog consume: can't import team.broken: ZeroDivisionError: division by zero\n"

    def test_until_empty_without_any_topic_is_wrong_use(self, tmp_path: Path, team: Path, call: Call) -> None:
        done = call("consume", "team", "--topics", "local:topics", "--set", "env=", "--until-empty")
        assert done.returncode == 2
        assert done.stderr.startswith("balog consume: orders in local:topics: no such topic;")
        assert not (tmp_path / "topics").exists()


class TestTheConsumersOfTheProject:
    def test_they_print_record_counts_and_failures(self, tmp_path: Path, call: Call) -> None:
        context = {"application": "tap-jsonl"}
        counter: Any = {"type": "counter", "metric": "record_count"}
        events = [
            Event.new("m", MetricPayload(**counter, value=3000, tags={"stream": "airports"}), context=context),
            Event.new("m", MetricPayload(**counter, value=376, tags={"stream": "airports"}), context=context),
            Event.new("m", MetricPayload(**counter, value=1461, tags={"endpoint": "weather"})),
            Event.new("m", MetricPayload(type="timer", metric="sync_duration", value=0.1)),
            Event.new("l", LogPayload(message="fine")),
            Event.new("l", LogPayload(message="odd\nmore", exc_text="Traceback …\nKeyError: 'x'\n"), level="CRITICAL"),
            Event.new("x", {"cls_type": "theirs"}, level="ERROR", context=context),
            Event.new("r", RunPayload(outcome="succeeded", duration=1, exit_code=0, command="tap-a")),
            Event.new("r", RunPayload(outcome="failed", duration=2.5, exit_code=1, command="tap-b", records=7)),
        ]
        with LocalTopics(tmp_path / "topics") as home:
            home.topic("singer-events").publish([Message(event.header.id, encode(event)) for event in events])
        lines = []
        for module in ("records", "failures"):
            where = ("--topics", f"local:{tmp_path}/topics", "--group", module, "--until-empty")
            done = call("consume", f"consumers.{module}", *where)
            assert done.returncode == 0, done.stderr
            lines += [" ".join(line.split()) for line in done.stdout.splitlines()]
        at = f"{events[5].header.timestamp:%H:%M:%S}"
        assert [line.replace(f"{events[6].header.timestamp:%H:%M:%S}", at) for line in lines] == [
            "airports 3,376 records (tap-jsonl)",
            "weather 1,461 records (?)",
            f"CRITICAL {at} ?: odd: KeyError: 'x'",
            f"ERROR {at} tap-jsonl: x",
            "FAILED tap-b ended with exit code 1 after 2.5 s and 7 records",
        ]
        assert "9 deliveries: " in done.stderr

    def test_one_that_lacks_a_setting_says_so_in_one_line_with_exit_code_2(self, tmp_path: Path, call: Call) -> None:
        event = Event.new("tests", {})
        with LocalTopics(tmp_path / "topics") as home:
            home.topic("singer-events").publish([Message(event.header.id, encode(event))])
            done = call("consume", "consumers.archive", "--topics", f"local:{tmp_path}/topics")
            assert done.returncode == 2
            assert done.stderr.splitlines()[-1].startswith("balog consume: consumers.archive needs --set archive=")
            assert "Traceback" not in done.stderr
            assert [message.attempts for message in home.topic("singer-events").receive("balog")] == [1]
