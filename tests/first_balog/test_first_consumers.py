"""Consumers of the first balog, version 1.2.3: the cases that its documentation and tests state."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import balog
from balog.common.errors import ConfigError
from balog.consumers import Consumer, ConsumerHub, ConsumerOperator, Engine, consumer_config
from balog.consumers.kafka import KafkaEngine
from balog.consumers.running.listing import unmet_version
from balog.consumers.sqs import SQSEngine
from balog.event import FACILITY_VERSION, Event
from balog.testing import MemoryTopics, publish, run_until_empty
from tests.stand_ins.programs import run_python

KEYS = ("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")


HANDLERS = """
from balog.consumers import consumer_config

@consumer_config(topic="foo.bar", cls_type="eggs")
def handler_a(event): ...

@consumer_config(topic="spam.eggs")
def handler_b(event): ...

@consumer_config(topic="5566", cls_type=("55", "66"))
def handler_c(event): ...

@consumer_config(topic="5566", cls_type=("77", "88"))
def handler_d(event): ...

@consumer_config(topic="5566", cls_type=("66", "88"))
def handler_e(event): ...
"""


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ConsumerHub:
    """Five handlers of three topics, found by a scan."""
    (tmp_path / "first_handlers.py").write_text(HANDLERS, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "first_handlers", raising=False)
    hub = ConsumerHub()
    hub.scan("first_handlers")
    return hub


def names(consumers: Any) -> list[str]:
    return [consumer.name.rpartition("_")[2] for consumer in consumers]


class TestHub:
    def test_a_scan_finds_all(self, hub: ConsumerHub) -> None:
        """Iteration yields the consumers."""
        assert names(hub) == names(hub.consumers) == ["a", "b", "c", "d", "e"]

    def test_consumers_have_their_declaration(self, hub: ConsumerHub) -> None:
        """``cls_type`` is a tuple, in the order of the declaration; None without a condition."""
        declared = {name: (one.topic, one.cls_type) for name, one in zip("abcde", hub, strict=True)}

        assert declared["a"] == ("foo.bar", ("eggs",))
        assert declared["b"] == ("spam.eggs", None)
        assert declared["c"] == ("5566", ("55", "66"))

    @pytest.mark.parametrize(
        ("cls_type", "found"), [("eggs", ["a", "b"]), ("88", ["b", "d", "e"]), ("66", ["b", "c", "e"]), ("x", ["b"])]
    )
    def test_route_yields_who_wants_an_event(self, hub: ConsumerHub, cls_type: str, found: list[str]) -> None:
        """The event is an ``Event`` or a dict, whole or only its payload."""
        assert names(hub.route({"payload": {"cls_type": cls_type}})) == found
        assert names(hub.route(Event.new("c", {"cls_type": cls_type}))) == found

    def test_add_consumer_adds_one(self) -> None:
        """Without a decorator."""
        hub, consumer = ConsumerHub(), Consumer(lambda event: None, "t")
        hub.add_consumer(consumer)

        assert list(hub) == [consumer]

    def test_two_consumers_need_two_names(self) -> None:
        """The ledger knows consumers by name; ``name=`` is the line to add."""
        hub = ConsumerHub()
        hub.add_consumer(Consumer(lambda event: None, "t"))
        with pytest.raises(ConfigError, match="give one of them another name"):
            hub.add_consumer(Consumer(lambda event: None, "u"))
        hub.add_consumer(Consumer(lambda event: None, "u", name="second"))

        assert len(list(hub)) == 2


class TestConsumer:
    def test_arguments_by_position(self) -> None:
        """Function, topic, type, version, name."""

        def handle(event: Any) -> None: ...

        consumer = Consumer(handle, "foobar", "eggs", ">=1.0.1", "mine")

        assert (consumer.func, consumer.topic, consumer.name) == (handle, "foobar", "mine")
        assert (consumer.cls_type, consumer.version) == (("eggs",), (">=1.0.1",))

    @pytest.mark.parametrize(
        ("cls_type", "matched"),
        [("eggs", ["eggs"]), (("eggs", "spam"), ["eggs", "spam"]), (None, ["eggs", "super_eggs", "spam", "foobar"])],
    )
    def test_types_are_compared_whole(self, cls_type: Any, matched: list[str]) -> None:
        """A type that contains another one's name is another type."""
        consumer = Consumer(lambda: None, "foobar", cls_type=cls_type)

        types = ["eggs", "super_eggs", "spam", "foobar"]
        assert [one for one in types if consumer.match_event({"payload": {"cls_type": one}})] == matched

    def test_the_decorator_is_an_attribute_of_the_package(self) -> None:
        """``balog.consumer_config``, without a further import."""
        assert balog.consumer_config is consumer_config

    def test_rooms_are_attributes_of_the_package(self) -> None:
        """``import balog`` was enough for ``balog.consumers.ConsumerHub`` and ``balog.engines.KafkaEngine``."""
        program = (
            "import balog, sys\n"
            "assert 'balog.consumers' not in sys.modules\n"
            "print(balog.consumers.ConsumerHub.__name__, balog.engines.KafkaEngine.__name__, "
            "balog.engines.SQSEngine.__name__)\n"
        )
        assert run_python(program).stdout.split() == ["ConsumerHub", "KafkaEngine", "SQSEngine"]


class TestOperator:
    def test_a_handler_with_one_argument_gets_the_event(self, topics: MemoryTopics) -> None:
        """As the first balog called handlers when there was no operator."""
        handled: list[Any] = []

        def handle(event: Any) -> None:
            handled.append(event["payload"]["cls_type"])

        hub = ConsumerHub()
        hub.add_consumer(Consumer(handle, "test"))
        publish(topics, "test", {"cls_type": "metrics"})
        run_until_empty(hub, topics)

        assert handled == ["metrics"]

    @pytest.mark.parametrize(
        ("handler", "arguments"),
        [
            (lambda event: (event,), 1),
            (lambda settings, event: (settings, event), 2),
            (lambda event, more=None: (event, more), 2),
            (lambda *args: args, 2),
        ],
    )
    def test_settings_come_where_there_is_room(self, handler: Any, arguments: int) -> None:
        """Two arguments are settings and event."""
        event = Event.new("c", {})
        called = ConsumerOperator({"a": 1}).process_event(Consumer(handler, "t"), event)

        assert called == ((event,) if arguments == 1 else ({"a": 1}, event))


PRODUCER = """
from balog import get_logger
balogger = get_logger(__name__)

balogger.info('done', payload={
    'cls_type': 'metrics',
    'values': [
        {'name': 'total', 'value': 123},
        {'name': 'succeeded', 'value': 456},
        {'name': 'failed', 'value': 789},
    ],
})
"""

CONSUMER = """
from balog.consumers import consumer_config

@consumer_config(
    topic='myproj-events-{env}',
    cls_type='metrics',
    version='<1.0',
)
def process_metrics(settings, event):
    print(settings['env'], [value['value'] for value in event.payload['values']])
"""


def run(folder: Path, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, timeout=60, **options
    )


class TestVersionBelowOne:
    """``version='<1.0'`` of the README."""

    def test_the_producer_and_the_consumer_of_the_readme_work_together(self, tmp_path: Path) -> None:
        """Both unchanged, except for a line that prints."""
        (tmp_path / "producer.py").write_text(PRODUCER)
        (tmp_path / "yourpackage.py").write_text(CONSUMER)
        produced = run(tmp_path, "producer.py")
        topic = ("--topics", "local:topics")
        published = run(
            tmp_path, "-m", "balog", "topics", "publish", "myproj-events-prod", *topic, input=produced.stderr
        )
        done = run(tmp_path, "-m", "balog", "consume", "yourpackage", *topic, "--set", "env=prod", "--until-empty")

        assert published.returncode == done.returncode == 0, published.stderr + done.stderr
        assert done.stdout == "prod [123, 456, 789]\n"
        assert "facility" not in done.stderr

    @pytest.mark.parametrize("version", [None, "<2.0", (">=0.0.1", "<2"), "<1.0", "==0.1"])
    def test_a_condition_that_holds_today_is_silent(self, version: Any) -> None:
        """Whatever else it excludes."""
        assert unmet_version(Consumer(lambda event: None, "t", version=version)) is None

    def test_the_list_of_consumers_warns(self, tmp_path: Path) -> None:
        """``--strict`` makes it an error, for CI."""
        (tmp_path / "mine.py").write_text(
            "import balog\n@balog.consumer_config(topic='t', version='>=1')\ndef handle(event): pass\n",
        )
        done = run(tmp_path, "-m", "balog", "consumers", "list", "mine", "--strict")

        assert done.returncode == 1
        assert "balog consumers: consumer mine.handle gets no event that this release writes" in done.stderr
        assert FACILITY_VERSION in done.stderr


class TestSqsEngine:
    def test_arguments_by_position(self) -> None:
        """Hub, region, key, secret, period, number, operator, handler of the rest."""
        hub, operator = ConsumerHub(), ConsumerOperator()
        engine = SQSEngine(hub, "us-east-1", *KEYS, 2, 5, operator, print)

        assert engine.hub is hub
        assert engine.topics.topic("q").poll_timeout == 2.0
        assert engine.batch == 5
        assert (engine.operator, engine.default_event_handler) == (operator, print)

    def test_arguments_by_name(self) -> None:
        """Those of the README, and those of its constructor."""
        engine = SQSEngine(
            hub=ConsumerHub(),
            region="us-east-1",
            aws_access_key_id=KEYS[0],
            aws_secret_access_key=KEYS[1],
            polling_period=1,
            num_messages=10,
            consumer_operator=ConsumerOperator(),
            default_event_handler=print,
        )

        assert (engine.topics.topic("q.fifo").poll_timeout, engine.batch) == (1.0, 10)
        assert engine.running is False

    @pytest.mark.parametrize("period", [-1, 21, float("nan"), "1", True])
    def test_a_period_that_sqs_does_not_have_is_an_error(self, period: Any) -> None:
        """SQS waits 20 seconds at most."""
        with pytest.raises(ConfigError, match=r"polling_period .* expected seconds from 0 to 20"):
            SQSEngine(ConsumerHub(), "us-east-1", *KEYS, polling_period=period)

    def test_a_number_of_messages_below_one_is_an_error(self) -> None:
        """As for the batch of any engine."""
        with pytest.raises(ConfigError, match="batch 0"):
            SQSEngine(ConsumerHub(), "us-east-1", *KEYS, num_messages=0)


class TestKafkaEngine:
    @pytest.mark.parametrize("server", ["192.168.1.1:9202", ["192.168.1.1:9202"], ("a:1", "b:2")])
    def test_arguments_by_position(self, server: Any) -> None:
        """Hub, server or servers, group, topic; the topics are those that consumers name, as before."""
        engine = KafkaEngine(ConsumerHub(), server, "group", "topic")

        assert (engine.group, engine.running) == ("group", False)
        assert engine.topics.url == "kafka:" + (server if isinstance(server, str) else ",".join(server))

    def test_arguments_by_name(self) -> None:
        """With an operator and a handler of events that nobody wants."""
        operator = ConsumerOperator()
        engine = KafkaEngine(
            hub=ConsumerHub(),
            kafka_server="kafka:9092",
            group="g",
            topic="t",
            consumer_operator=operator,
            default_event_handler=print,
        )

        assert (engine.operator, engine.default_event_handler) == (operator, print)

    def test_an_operator_in_the_place_of_the_topic_is_an_error(self) -> None:
        """The line says which name to use."""
        with pytest.raises(ConfigError, match="pass an operator as consumer_operator="):
            KafkaEngine(ConsumerHub(), "kafka:9092", "g", ConsumerOperator())  # type: ignore[arg-type]


class TestEngine:
    def test_events_that_nobody_wants_go_to_the_default_handler(self, topics: MemoryTopics) -> None:
        """``default_event_handler`` gets the event alone."""
        left: list[str] = []
        hub = ConsumerHub()
        hub.add_consumer(Consumer(lambda event: None, "t", cls_type="eggs"))
        publish(topics, "t", {"cls_type": "spam"})
        Engine(hub, topics, default_event_handler=lambda event: left.append(event["payload"]["cls_type"])).run(
            until_empty=True
        )

        assert left == ["spam"]

    def test_an_operator_needs_no_base_class(self, topics: MemoryTopics) -> None:
        """Any object with ``get_topic`` and ``process_event``, as in the README."""
        handled: list[Any] = []

        class Operator:
            def __init__(self, settings: dict[str, str]) -> None:
                self.settings = settings

            def get_topic(self, consumer: Any) -> Any:
                return consumer.topic.format(env=self.settings["api.sqs.queue_env"])

            def process_event(self, consumer: Any, event: Any) -> Any:
                return consumer.func(self.settings, event)

        hub = ConsumerHub()
        hub.add_consumer(
            Consumer(
                lambda settings, event: handled.append((settings, event["header"]["channel"])), "myproj-events-{env}"
            )
        )
        settings = {"api.sqs.queue_env": "prod"}
        publish(topics, "myproj-events-prod", {"cls_type": "metrics"})
        Engine(hub, topics, Operator(settings)).run(until_empty=True)

        assert [found for found, _ in handled] == [settings]


class TestRunning:
    """``engine.running`` could be set in the first balog, to stop the engine."""

    def test_a_handler_ends_the_run(self) -> None:
        topics, seen = MemoryTopics(), []

        def handle(event: Event) -> None:
            seen.append(engine.running)
            engine.running = False

        publish(topics, "t", {"n": 1})
        hub = ConsumerHub()
        hub.add_consumer(Consumer(handle, "t"))
        engine = Engine(hub, topics)
        engine.run()

        assert seen == [True]
        assert not engine.running

    def test_it_does_not_start_one(self) -> None:
        with pytest.raises(ConfigError, match="only False can be set"):
            Engine(ConsumerHub(), MemoryTopics()).running = True
