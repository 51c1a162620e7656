"""What an engine counts, before the eyes of ``promtool`` and of a real Prometheus that scrapes it."""

import threading
from pathlib import Path

import pytest
from prometheus_client import generate_latest

from balog.consumers import Consumer, ConsumerHub, Engine, Hook
from balog.consumers.ledgers.factory import MemoryLedger
from balog.consumers.monitoring.health import HealthServer
from balog.consumers.monitoring.metrics_hook import MetricsHook
from balog.event import Event, encode
from balog.topics import Message
from balog.topics.local import LocalTopics
from tests.services.servers.process import free_port
from tests.services.servers.prometheus import lint, running_prometheus

pytestmark = pytest.mark.service


def publish(home: LocalTopics, *numbers: int) -> None:
    events = [Event.new("c", {"n": number}) for number in numbers]
    home.topic("orders").publish([Message(event.header.id, encode(event)) for event in events])


def handle(settings: object, event: Event) -> None:
    if event.payload["n"] < 0:
        raise ValueError("negative")


@pytest.fixture
def home(tmp_path: Path):
    with LocalTopics(tmp_path / "topics") as home:
        yield home


def engine(home: LocalTopics, hooks: tuple[Hook, ...]) -> Engine:
    hub = ConsumerHub()
    hub.add(Consumer(handle, "orders", name='odd "name"\\', retries=1, backoff=0.01))
    return Engine(hub, home, group="ops", hooks=hooks, ledger=MemoryLedger())


def test_promtool_finds_no_fault(home: LocalTopics) -> None:
    publish(home, 1, -1)
    hook = MetricsHook()
    during: list[str] = []

    class Look(Hook):
        def before_process(self, work: object) -> None:
            during.append(generate_latest(hook.registry()).decode())

    engine(home, (hook, Look())).run(until_empty=True)
    assert "balog_consumer_lag" in during[0]
    assert lint(during[0]) == ""
    assert lint(generate_latest(hook.registry()).decode()) == ""


def test_a_prometheus_sees_what_was_handled_and_what_is_left(home: LocalTopics, tmp_path: Path) -> None:
    port, metrics = free_port(), MetricsHook(max_age=0.0)
    with HealthServer(f"127.0.0.1:{port}", metrics) as watch, running_prometheus(tmp_path, [port]) as server:
        publish(home, 1, 2, -3)
        made = engine(home, watch.hooks)
        running = threading.Thread(target=made.run)
        running.start()
        try:
            labels = ("topic", "consumer")
            key = ("orders", 'odd "name"\\')
            found = server.wait_for("balog_consumer_dead_total", "topic", until=lambda seen: seen.get(("orders",)) == 1)
            assert found == {("orders",): 1}
            assert server.query("balog_consumer_succeeded_total", *labels) == {key: 2}
            assert server.query("balog_consumer_failed_total", *labels) == {key: 2}
            assert server.query("balog_consumer_retried_total", *labels) == {key: 1}
            assert server.query("balog_consumer_handler_seconds_count", *labels) == {key: 4}
            assert server.query("balog_consumer_up", "topic") == {("orders",): 1}
            left = server.wait_for(
                "balog_consumer_dead_letters", "topic", "group", until=lambda seen: 1 in seen.values()
            )
            assert left == {("orders", "ops"): 1}
            assert server.query("balog_consumer_lag", "group") == {("ops",): 0}
        finally:
            made.stop()
            running.join(30)
