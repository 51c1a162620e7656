"""The handlers of the top-level ``consumers/``, through hub and engine, against what stands in for their peers."""

from __future__ import annotations

import base64
import gzip
import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

import consumers
from balog.consumers import ConsumerHub, EngineStats, Halt
from balog.event import Event, Level, decode, encode
from balog.event.payload import RunPayload
from balog.testing import MemoryTopics, assert_no_dead_letters, publish, run_until_empty
from balog.topics import open_topics
from consumers import alerts, archive, callbacks, failures, metrics, records
from tests.stand_ins.http_server import Answer, HttpStandIn
from tests.stand_ins.pagerduty import ROUTING_KEY, PagerDuty

ROOT = Path(__file__).parents[2]
TOPIC = "singer-events"
KEY = "whsec_" + base64.b64encode(bytes(32)).decode()


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Each test gets ways out of its own, closed at its end."""
    records.totals.clear()
    yield
    for way in (alerts.pagerduty, archive.store, callbacks.webhook, metrics.adapter):
        way.cache_clear()


@pytest.fixture
def server() -> Iterator[HttpStandIn]:
    with HttpStandIn() as server:
        yield server


@pytest.fixture
def handle(topics: MemoryTopics) -> Any:
    """Give a function that publishes events and runs a module's handlers on them; nothing may be given up."""

    def handle(module: ModuleType, *events: Event, **settings: str) -> EngineStats:
        publish(topics, TOPIC, *events)
        counts = run_until_empty(module, topics, settings=settings)
        assert_no_dead_letters(topics)
        return counts

    return handle


def event(payload: Any, application: str = "tap-x", level: Level = "INFO", run_id: str = "r1") -> Event:
    context = {"application": application, "run_id": run_id}
    return Event.new("tap-x", payload, level=level, context=context)


def count(value: float, run_id: str = "r1", **tags: Any) -> Event:
    point = {"cls_type": "metric", "type": "counter", "metric": "record_count", "value": value, "tags": tags}
    return event(point, run_id=run_id)


def run(outcome: Any, application: str = "tap-x", records: int = 10) -> Event:
    exit_code = 0 if outcome == "succeeded" else 3
    report = RunPayload(outcome=outcome, exit_code=exit_code, duration=1.5, command=application, records=records)
    return event(report, application, "INFO" if outcome == "succeeded" else "ERROR")


class TestAllOfThem:
    def test_each_module_has_a_handler_and_no_two_have_one_name(self) -> None:
        hub = ConsumerHub()
        hub.scan(consumers)
        assert [consumer.name for consumer in hub.consumers] == [
            "consumers.alerts.alert",
            "consumers.archive.archive",
            "consumers.callbacks.call_back",
            "consumers.failures.print_failure",
            "consumers.metrics.measure",
            "consumers.records.count_records",
        ]

    @pytest.mark.parametrize(
        ("module", "needed"),
        [
            (alerts, "PAGERDUTY_ROUTING_KEY or --set pagerduty_key_file=PATH"),
            (archive, "--set archive=FOLDER"),
            (callbacks, "--set webhook=URL"),
            (metrics, "--set prometheus=HOST:PORT, prometheus=FILE.prom or datadog=HOST:PORT"),
        ],
    )
    def test_one_without_what_it_needs_says_so_in_a_line_and_gives_up_no_event(
        self, topics: MemoryTopics, monkeypatch: pytest.MonkeyPatch, module: ModuleType, needed: str
    ) -> None:
        monkeypatch.delenv("PAGERDUTY_ROUTING_KEY", raising=False)
        publish(topics, TOPIC, run("failed"))
        with pytest.raises(Halt, match=re.escape(f"{module.__name__} needs {needed}")) as caught:
            run_until_empty(module, topics)
        assert "\n" not in str(caught.value)
        state = topics.topic(TOPIC).group_state("balog")
        assert (state.pending, state.dead) == (1, 0)
        [message] = topics.topic(TOPIC).receive("balog")
        assert message.attempts == 1, "nobody tried it, so this is the first attempt"

    def test_a_page_is_at_most_sixty_lines(self) -> None:
        for module in (alerts, archive, callbacks, failures, metrics, records):
            assert len(Path(str(module.__file__)).read_text().splitlines()) <= 60


class TestRecords:
    def test_they_are_added_up_by_stream_and_run(self, handle: Any, capsys: pytest.CaptureFixture[str]) -> None:
        """Given counters, whose values are deltas, of two runs, then each run counts from nothing."""
        handle(records, count(1000, stream="users"), count(500, endpoint="users"), count(7, "r2", stream="users"))
        assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
            ["users", "1,500", "records", "(tap-x)"],
            ["users", "7", "records", "(tap-x)"],
        ]

    def test_runs_that_ended_long_ago_are_forgotten(self, handle: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(records, "REMEMBERED", 2)
        handle(records, *(count(1, run_id, stream="users") for run_id in ("r1", "r2", "r1", "r3")))
        assert {key[1]: total for key, total in records.totals.items()} == {"r1": 2, "r3": 1}

    def test_a_counter_that_is_no_number_is_given_up_alone(
        self, topics: MemoryTopics, capsys: pytest.CaptureFixture[str]
    ) -> None:
        broken = count(1, stream="users").payload | {"value": "many"}
        good = [count(2, stream="users"), event(broken), count(3, stream="users")]
        publish(topics, TOPIC, *good)
        counts = run_until_empty(records, topics)
        assert (counts.succeeded, counts.dead) == (2, 1)
        [letter] = topics.topic(TOPIC).dead_letters("balog")
        assert letter.id == good[1].header.id
        assert "no metric: $.payload.value" in letter.reason
        assert capsys.readouterr().out.split()[1] == "5"


class TestFailures:
    def test_they_are_printed_with_the_exception_and_good_news_is_not(
        self, handle: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        broken = {"cls_type": "log", "message": "sync failed", "exc_text": "Traceback …\nValueError: bad"}
        handle(
            failures,
            event({"cls_type": "log", "message": "all is well"}),
            event(broken, level="ERROR"),
            run("failed"),
            run("succeeded"),
        )
        said = capsys.readouterr().out.splitlines()
        assert len(said) == 2
        assert said[0].startswith("ERROR")
        assert said[0].endswith("tap-x: sync failed: ValueError: bad")
        assert " ".join(said[1].split()) == "FAILED tap-x ended with exit code 3 after 1.5 s and 10 records"


class TestAlerts:
    @pytest.fixture
    def pagerduty(self, server: HttpStandIn, monkeypatch: pytest.MonkeyPatch) -> PagerDuty:
        monkeypatch.setenv("PAGERDUTY_ROUTING_KEY", ROUTING_KEY)
        server.respond = PagerDuty()
        return server.respond

    def test_a_failed_run_is_an_incident_of_its_pipeline(
        self, handle: Any, server: HttpStandIn, pagerduty: PagerDuty
    ) -> None:
        handle(alerts, run("failed", "tap-a"), run("succeeded", "tap-b"), pagerduty=server.url)
        assert list(pagerduty.open) == ["balog/tap-a"]

    def test_the_incident_is_resolved_when_the_run_succeeds_again(
        self, handle: Any, server: HttpStandIn, pagerduty: PagerDuty
    ) -> None:
        handle(alerts, run("failed"), pagerduty=server.url)
        assert pagerduty.open
        handle(alerts, run("succeeded"), pagerduty=server.url)
        assert not pagerduty.open

    def test_a_failure_that_has_to_be_sent_again_still_comes_before_its_success(
        self, handle: Any, server: HttpStandIn, pagerduty: PagerDuty
    ) -> None:
        """Given a PagerDuty that is down for the first requests, then the incident ends resolved, and another opens."""
        server.will(Answer(503), Answer(trouble="reset"), Answer(500))
        handle(alerts, run("failed", "tap-a"), run("succeeded", "tap-a"), run("failed", "tap-b"), pagerduty=server.url)
        assert list(pagerduty.open) == ["balog/tap-b"]
        actions = [(each["event_action"], each["dedup_key"]) for each in pagerduty.accepted]
        assert actions.index(("trigger", "balog/tap-a")) < actions.index(("resolve", "balog/tap-a"))

    def test_the_routing_key_may_be_in_a_file_and_is_never_told(
        self, handle: Any, server: HttpStandIn, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        server.respond = PagerDuty()
        server.will(Answer(500, f"no {ROUTING_KEY} here".encode()))
        file = tmp_path / "key"
        file.write_text(ROUTING_KEY + "\n")
        handle(alerts, run("failed"), pagerduty=server.url, pagerduty_key_file=str(file))
        assert server.respond.open
        assert ROUTING_KEY not in caplog.text


class TestArchive:
    def lines(self, folder: Path) -> dict[str, list[dict[str, Any]]]:
        """Events by the folder of their day, from the files that a reader sees."""
        archive.store(str(folder)).close()
        found: dict[str, list[dict[str, Any]]] = {}
        for path in sorted(folder.glob(f"{TOPIC}/date=*/[!.]*.jsonl.gz")):
            text = gzip.decompress(path.read_bytes()).decode()
            found.setdefault(path.parent.name, []).extend(json.loads(line) for line in text.splitlines())
        return found

    def test_every_event_is_in_the_folder_of_its_day_once(self, handle: Any, tmp_path: Path) -> None:
        events = [event({"n": number}) for number in range(2500)]
        old = msgspec.json.decode(encode(event({"n": -1})))
        old["header"]["timestamp"] = "2024-02-29T23:59:59.999999Z"
        aged = decode(msgspec.json.encode(old))
        handle(archive, *events, aged, archive=str(tmp_path))
        found = self.lines(tmp_path)
        assert [each["payload"]["n"] for each in found.pop("date=2024-02-29")] == [-1]
        numbers = sorted(each["payload"]["n"] for of_day in found.values() for each in of_day)
        assert numbers == list(range(2500))

    def test_it_is_on_disk_when_the_handler_returns(self, tmp_path: Path) -> None:
        """Given a process that dies without closing anything, then the next to open the archive has every event."""
        archive.archive({"archive": str(tmp_path)}, [event({"n": number}) for number in range(50)])
        copy = tmp_path / "after the crash"
        for part in tmp_path.glob(f"{TOPIC}/date=*/.*.part"):
            place = copy / part.relative_to(tmp_path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(part.read_bytes())
        archive.archive({"archive": str(copy)}, [event({"n": 50})])
        [of_day] = self.lines(copy).values()
        assert sorted(each["payload"]["n"] for each in of_day) == list(range(51))

    def test_a_process_that_is_killed_leaves_no_event_out(self, tmp_path: Path) -> None:
        """Given kill -9 at any moment, then what was acked is in the archive, and the next run brings the rest."""
        url, place = f"local:{tmp_path / 'topics'}", tmp_path / "archive"
        with open_topics(url) as home:
            sent = {each.header.id for each in publish(home, TOPIC, *({"n": number} for number in range(3000)))}
        command = [sys.executable, "-m", "balog", "consume", "consumers.archive", "--topics", url]
        command += ["--set", f"archive={place}", "--lease", "1", "--until-empty"]
        child = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
        while child.poll() is None and not any(part.stat().st_size for part in place.glob("*/*/.*.part")):
            time.sleep(0.005)
        child.kill()
        assert child.wait() == -9, "it was through before it could be killed"
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
        found = [each["header"]["id"] for of_day in self.lines(place).values() for each in of_day]
        assert set(found) == sent
        with open_topics(url) as home:
            assert_no_dead_letters(home)

    def test_a_disk_that_refuses_is_waited_out(self, handle: Any, tmp_path: Path, topics: MemoryTopics) -> None:
        """Given a file in the place of the archive's folder, then nothing is lost until it is gone."""
        place = tmp_path / "archive"
        place.write_text("in the way")
        publish(topics, TOPIC, event({"n": 1}))
        with pytest.raises(AssertionError, match=r"consumers\.archive\.archive raised Retry: "):
            run_until_empty(archive, topics, settings={"archive": str(place)}, timeout=1.0)
        place.unlink()
        handle(archive, archive=str(place))
        assert [each["payload"]["n"] for of_day in self.lines(place).values() for each in of_day] == [1]


class TestCallbacks:
    @pytest.fixture(autouse=True)
    def secret(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("WEBHOOK_SECRET", KEY)

    def test_reports_of_runs_are_posted_and_a_receiver_can_verify_them(self, handle: Any, server: HttpStandIn) -> None:
        standardwebhooks = pytest.importorskip("standardwebhooks", reason="standardwebhooks is not installed")
        sent = [run("failed"), run("succeeded")]
        handle(callbacks, *sent, event({"cls_type": "log", "message": "not wanted"}), webhook=f"{server.url}/runs")
        receiver = standardwebhooks.Webhook(KEY)
        got = [receiver.verify(request.body, dict(request.headers.items())) for request in server.requests]
        assert sorted(each["header"]["id"] for each in got) == sorted(each.header.id for each in sent)

    def test_a_repetition_has_the_same_id(self, handle: Any, server: HttpStandIn) -> None:
        server.will(Answer(503), Answer(trouble="close"))
        sent = run("failed")
        handle(callbacks, sent, webhook=server.url)
        assert [request.headers["webhook-id"] for request in server.requests] == [sent.header.id] * 3

    def test_what_the_receiver_refuses_is_a_dead_letter_and_holds_up_no_other(
        self, topics: MemoryTopics, server: HttpStandIn
    ) -> None:
        sent = [run("failed", f"tap-{number}") for number in range(20)]
        server.respond = lambda request: Answer(422 if sent[3].header.id.encode() in request.body else 200)
        publish(topics, TOPIC, *sent)
        counts = run_until_empty(callbacks, topics, settings={"webhook": server.url})
        assert (counts.succeeded, counts.dead) == (19, 1)
        [letter] = topics.topic(TOPIC).dead_letters("balog")
        assert letter.id == sent[3].header.id
        assert "422" in letter.reason


class TestMetrics:
    def test_prometheus_reads_what_was_counted(self, handle: Any, tmp_path: Path) -> None:
        file = tmp_path / "balog.prom"
        handle(
            metrics,
            count(1000, stream="users"),
            count(500, stream="users"),
            run("failed"),
            event({"cls_type": "log", "message": "not wanted"}),
            prometheus=str(file),
        )
        text = file.read_text()
        assert 'record_count_total{stream="users"} 1500.0' in text
        assert 'runs_total{outcome="failed"} 1.0' in text

    def test_an_agent_gets_the_lines_of_dogstatsd(self, handle: Any) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as agent:
            agent.bind(("127.0.0.1", 0))
            agent.settimeout(10)
            handle(metrics, count(3, stream="users"), datadog=f"127.0.0.1:{agent.getsockname()[1]}")
            assert agent.recv(2000) == b"record_count:3|c|#stream:users"

    def test_what_is_no_metric_is_given_up_alone(self, topics: MemoryTopics, tmp_path: Path) -> None:
        point = {"cls_type": "metric", "type": "timer", "metric": "wait", "value": -1, "tags": {}}
        publish(topics, TOPIC, count(1, stream="users"), point, count(2, stream="users"))
        file = tmp_path / "balog.prom"
        counts = run_until_empty(metrics, topics, settings={"prometheus": str(file)})
        assert (counts.succeeded, counts.dead) == (2, 1)
        [letter] = topics.topic(TOPIC).dead_letters("balog")
        assert "a timer cannot be -1 seconds" in letter.reason
        assert 'record_count_total{stream="users"} 3.0' in file.read_text()

    @pytest.mark.parametrize("place", ["9464", "localhost:", "localhost:http", "localhost:70000"])
    def test_a_place_that_is_none_is_refused(self, place: str) -> None:
        with pytest.raises(Halt, match="is not HOST:PORT"):
            metrics.measure({"prometheus": place}, [count(1)])
