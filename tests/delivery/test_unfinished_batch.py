"""An end in the middle of a batch: what the receiver has is not sent again, and what it has not is kept."""

import json
import socket
import subprocess
import sys
import threading
import time
from datetime import datetime, timezone

import pytest

from balog.common.secrets import Secret
from balog.delivery import Dispatcher, worker
from balog.delivery.replay import find_backlogs
from balog.delivery.spool import SpoolConfig
from balog.event import Event
from balog.sinks import Batching, SinkError
from balog.sinks.datadog import DatadogSinkConfig
from balog.sinks.email import EmailSink, EmailSinkConfig
from balog.sinks.pagerduty import PagerDutySinkConfig
from balog.sinks.statsd import StatsdSinkConfig
from balog.sinks.store import Part, StoreSinkConfig
from balog.sinks.topic import TopicSinkConfig
from balog.sinks.webhook import WebhookSinkConfig
from balog.topics.sqs.topic import SqsTopic
from tests.stand_ins.alerts import alert_event
from tests.stand_ins.batches import deliver, metric
from tests.stand_ins.http_fixtures import http_server
from tests.stand_ins.http_server import Answer
from tests.stand_ins.probe_sink import balanced, probe
from tests.waiting import wait_for

__all__ = ["http_server"]
HANG = Answer(trouble="hang")
BATCH = Batching(age=0.2)
KEY = Secret(env="UNFINISHED_KEY")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(worker, "GRACE", 0.2)
    monkeypatch.setenv("UNFINISHED_KEY", "k" * 32)


@pytest.fixture
def never():
    """An event that no one sets until the test is over."""
    released = threading.Event()
    yield released
    released.set()


@pytest.fixture
def ended(tmp_path):
    """A function that ends a sink which hangs in a batch, and returns its stats and the numbers of the kept events."""

    def end(config, events, hangs, seconds=0.0):
        dispatcher = Dispatcher([config], lambda line: None, spool=SpoolConfig(path=str(tmp_path / "spool")))
        for delivery in deliver(*events):
            dispatcher.put(delivery)
        wait_for(hangs)
        ((_, stats),) = dispatcher.close(seconds).items()
        assert balanced(stats)
        lines = [line for path in (tmp_path / "spool").glob("*/*.jsonl") for line in path.read_bytes().splitlines()[1:]]
        kept = [json.loads(line)["payload"].get("n", line) for line in lines]
        return stats, kept[len(kept) - stats.spooled :]

    return end


def numbered(count, **more):
    return [Event.new("a", {"n": n, **more}) for n in range(count)]


def hangs_at(monkeypatch, never, owner, method, number):
    """Let a method hang at its call of this number, and return whether it does."""
    calls, call = [], getattr(owner, method)

    def wrapper(*arguments):
        calls.append(arguments)
        if len(calls) == number:
            never.wait()
        return call(*arguments)

    monkeypatch.setattr(owner, method, wrapper)
    return lambda: len(calls) >= number


def test_each_short_run_gets_further_at_a_slow_receiver(http_server, tmp_path):
    """Given runs that end long before a receiver is through, then it gets each event, few twice, none for nothing."""
    numbers = []

    def slow(request):
        time.sleep(0.1)
        numbers.append(json.loads(request.body)["payload"]["n"])
        return Answer(422 if numbers[-1] % 10 == 3 else 200)

    http_server.respond = slow
    run = f"""
import json
from balog.delivery import Dispatcher
from balog.delivery.spool import SpoolConfig
from balog.event import Event, encode
from balog.sinks import Delivery
from balog.sinks.webhook import WebhookSinkConfig
dispatcher = Dispatcher([WebhookSinkConfig(url={http_server.url!r})], print, spool=SpoolConfig(path="spool"))
for n in range(COUNT):
    event = Event.new("a", {{"n": n}})
    dispatcher.put(Delivery(event, encode(event)))
((_, stats),) = dispatcher.close(0.6).items()
print(stats.delivered, stats.dead, stats.spooled)
"""
    delivered = dead = runs = 0
    spooled = count = 30
    while spooled:
        command = [sys.executable, "-c", run.replace("COUNT", str(0 if runs else count))]
        output = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True, text=True, timeout=60).stdout
        done, refused, left = map(int, output.splitlines()[-1].split())
        assert left < spooled
        delivered, dead, spooled, runs = delivered + done, dead + refused, left, runs + 1
    assert runs > 1
    assert (delivered, dead, set(numbers)) == (27, 3, set(range(count)))
    assert len(numbers) <= count + 2 * runs


def test_the_rest_stays_where_it_is_in_a_full_spool(http_server, tmp_path):
    """Given a spool without room for a copy of the rest, then what was accepted is not sent again either."""
    spool = SpoolConfig(path=str(tmp_path / "spool"), max_bytes=1 << 16)
    config = WebhookSinkConfig(url=http_server.url, batch=Batching(age=0.01))
    http_server.respond = lambda request: HANG
    first = Dispatcher([config], lambda line: None, spool=spool)
    for delivery in deliver(*numbered(60, text="x" * 800)):
        first.put(delivery)
    assert first.close(0.2)[config.name].spooled == 60
    http_server.will(*[Answer()] * 5, HANG)
    before = len(http_server.requests)
    second = Dispatcher([config], lambda line: None, spool=spool)
    wait_for(lambda: len(http_server.requests) >= before + 6)
    assert second.close(0.0)[config.name].delivered == 5
    assert [(backlog.events, backlog.problem) for backlog in find_backlogs(tmp_path / "spool")] == [(55, "")]


class TestSinks:
    """Of each sink that makes several requests for a batch, those that were answered count."""

    def test_webhook(self, http_server, ended):
        http_server.will(Answer(), Answer(), Answer(400), HANG)
        config = WebhookSinkConfig(url=http_server.url, batch=BATCH)
        stats, kept = ended(config, numbered(10), lambda: len(http_server.requests) == 4)
        assert (stats.delivered, stats.dead, kept) == (2, 1, list(range(3, 10)))

    def test_pagerduty(self, http_server, ended):
        http_server.will(Answer(202), Answer(202), HANG)
        config = PagerDutySinkConfig(url=http_server.url, routing_key=KEY, batch=BATCH)
        events = [
            Event.new(f"pipeline{n % 4}", {"cls_type": "log", "message": "no", "n": n, "level": "ERROR"}, level="ERROR")
            for n in range(8)
        ]
        stats, kept = ended(config, events, lambda: len(http_server.requests) == 3)
        assert (stats.delivered, kept) == (4, [2, 3, 6, 7])

    def test_what_needs_no_call_to_pagerduty_does_not_come_again_alone(self, http_server, ended):
        http_server.will(Answer(202), Answer(202), HANG)
        config = PagerDutySinkConfig(url=http_server.url, routing_key=KEY, batch=BATCH)
        firing = alert_event(0, key="s")
        events = [firing, alert_event(1, key="s", state="resolved"), firing, alert_event(2, key="other")]
        stats, kept = ended(config, events, lambda: len(http_server.requests) == 3)
        assert (stats.delivered, len(kept)) == (3, 1)

    def test_datadog(self, http_server, ended):
        http_server.will(Answer(202, b'{"errors":[]}'), HANG)
        config = DatadogSinkConfig(url=http_server.url, api_key=KEY, batch=BATCH)
        events = [*numbered(2), *(metric(name=f"m{n}") for n in range(3)), *numbered(2)]
        stats, kept = ended(config, events, lambda: len(http_server.requests) == 2)
        assert (stats.delivered, kept) == (3, [0, 1, 0, 1])

    def test_email(self, monkeypatch, never, ended):
        monkeypatch.setattr(EmailSink, "_call", lambda self, call: {})
        hangs = hangs_at(monkeypatch, never, EmailSink, "send", 3)
        config = EmailSinkConfig(host="localhost", security="none", sender="a@b.c", to=["d@e.f"], batch=BATCH)
        stats, kept = ended(config, [alert_event(n, key=f"series {n}") for n in range(5)], hangs)
        assert (stats.delivered, len(kept)) == (2, 3)

    def test_store(self, monkeypatch, never, ended, tmp_path):
        hangs = hangs_at(monkeypatch, never, Part, "append", 2)
        days = [datetime(2026, 1, day, tzinfo=timezone.utc) for day in (1, 2)]
        events = [Event.new("a", {"n": n}, timestamp=days[n % 2]) for n in range(6)]
        config = StoreSinkConfig(path=str(tmp_path / "store"), topic="t", batch=BATCH)
        stats, kept = ended(config, events, hangs)
        assert (stats.delivered, kept) == (3, [1, 3, 5])

    def test_a_queue_of_sqs(self, monkeypatch, never, ended):
        monkeypatch.setattr(SqsTopic, "publish", lambda self, messages: len(messages))
        hangs = hangs_at(monkeypatch, never, SqsTopic, "publish", 3)
        config = TopicSinkConfig(url="sqs:eu-central-1", topic="t", batch=BATCH)
        stats, kept = ended(config, numbered(35), hangs)
        assert (stats.delivered, kept) == (20, list(range(20, 35)))

    def test_statsd(self, ended):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
            server.bind(("127.0.0.1", 0))
            config = StatsdSinkConfig(host="127.0.0.1", port=server.getsockname()[1], rate=10, batch=BATCH)
            events = [metric(name=f"record_count_{n}") for n in range(1000)]
            stats, kept = ended(config, events, lambda: server.recv(2000))
        assert 0 < stats.delivered < 1000
        assert len(kept) == 1000 - stats.delivered

    def test_a_batch_that_is_halved(self, never, ended):
        sink, config = probe(batch=BATCH)
        hanging = threading.Event()

        def refuse(n):
            if n == 5:
                hanging.set()
                never.wait()
            return SinkError("no", retryable=False) if n == 2 or not sink.halved else None

        sink.halved = False

        def whole(_, numbers):
            sink.halved = True
            return SinkError("no", retryable=False)

        sink.outcomes = [whole]
        sink.refuses = refuse
        stats, kept = ended(config, numbered(8), hanging.is_set)
        assert (stats.delivered, stats.dead, kept) == (3, 1, [4, 5, 6, 7])
