"""What an engine does is counted, and rendered as Prometheus reads it."""

import threading
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from balog.common.errors import TopicError
from balog.common.stats import StatSample
from balog.consumers import Consumer
from balog.consumers.hooks import Work
from balog.consumers.monitoring.lag import Lag
from balog.consumers.monitoring.metrics_hook import MetricsHook
from balog.consumers.outcomes import PartialFailure, Reject, Retry
from balog.consumers.stats import EngineState, EngineStats
from balog.delivery.stats import SinkStats
from balog.event import Event, encode
from balog.topics import GroupState, Message, Received
from balog.topics.local import LocalTopics
from tests.waiting import wait_for

BILL = Consumer(print, "orders", name="bill")
SHIP = Consumer(print, "orders", name="ship")


def engine(topics: object, **state: object) -> SimpleNamespace:
    consumers = [("orders", BILL), ("orders", SHIP)]
    return SimpleNamespace(
        topics=topics, group="g", consumers=consumers, counts=EngineStats(), state=EngineState(running=True, **state)
    )


def call(hook: MetricsHook, count: int = 1, error: BaseException | None = None, seconds: float = 0.02) -> list[Event]:
    events = [Event.new("c", {}) for _ in range(count)]
    hook.after_process(Work("orders", BILL, tuple(events), 1), error, seconds)
    return events


def values(hook: MetricsHook) -> dict[tuple[str, ...], float]:
    text = generate_latest(hook.registry()).decode()
    return {
        (
            sample.name.removeprefix("balog_consumer_"),
            *(sample.labels[label] for label in ("topic", "group", "consumer", "le") if label in sample.labels),
        ): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def outcomes(hook: MetricsHook) -> tuple[float, float]:
    """Give how many events of one consumer succeeded and failed."""
    found = values(hook)
    return found["succeeded_total", "orders", "bill"], found["failed_total", "orders", "bill"]


def received(count: int) -> list[Received]:
    return [Received(f"m{number}", b"", "", 1, 0.0) for number in range(count)]


@pytest.fixture
def hook() -> MetricsHook:
    return MetricsHook()


class TestCounting:
    def test_messages_are_counted_by_topic(self, hook: MetricsHook) -> None:
        hook.after_receive("orders", received(3))
        hook.after_receive("orders", [])
        hook.after_ack("orders", received(2))
        hook.dead("orders", received(1)[0], None, "no", [])
        found = values(hook)
        assert [found[f"{name}_total", "orders"] for name in ("received", "acked", "dead")] == [3, 2, 1]

    @pytest.mark.parametrize(
        ("error", "succeeded", "failed"),
        [
            (None, 3, 0),
            (ValueError("no"), 0, 3),
            (Reject("never"), 0, 3),
            (Retry("busy"), 0, 0),
            (PartialFailure(["LGother"]), 0, 3),  # it is unclear which ones failed
        ],
    )
    def test_events_of_a_call_succeed_or_fail_together(
        self, hook: MetricsHook, error: BaseException | None, succeeded: int, failed: int
    ) -> None:
        call(hook, 3, error)
        assert outcomes(hook) == (
            succeeded,
            failed,
        )

    def test_a_partial_failure_names_those_that_failed_and_those_that_wait(self, hook: MetricsHook) -> None:
        events = [Event.new("c", {}) for _ in range(4)]
        failed = {events[0].header.id: "no", events[1].header.id: Retry("busy")}
        hook.after_process(Work("orders", BILL, tuple(events), 1), PartialFailure(failed), 0.1)
        assert outcomes(hook) == (2, 1)

    def test_retries_are_counted_by_event(self, hook: MetricsHook) -> None:
        event = Event.new("c", {})
        hook.retried(Work("orders", BILL, (event,), 1), event, ValueError("no"), 1.0)
        assert values(hook)["retried_total", "orders", "bill"] == 1

    def test_seconds_fall_into_buckets_whose_bound_is_within(
        self, hook: MetricsHook, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("balog.consumers.monitoring.metrics_hook.BUCKETS", (0.1, 1.0))
        for seconds in (0.05, 0.1, 0.5, 7):
            call(hook, seconds=seconds)
        found = values(hook)
        counted = {key[-1]: value for key, value in found.items() if key[0] == "handler_seconds_bucket"}
        assert counted == {"0.1": 2, "1.0": 3, "+Inf": 4}
        assert found["handler_seconds_count", "orders", "bill"] == 4
        assert found["handler_seconds_sum", "orders", "bill"] == pytest.approx(7.65)


class TestEngine:
    def test_all_is_there_with_zero_before_anything_happened(self, hook: MetricsHook, home: LocalTopics) -> None:
        hook.started(engine(home))
        found = values(hook)
        assert found["received_total", "orders"] == found["failed_total", "orders", "ship"] == 0
        assert found["handler_seconds_count", "orders", "bill"] == 0

    def test_the_state_of_engine_and_group_is_asked_for_at_the_scrape(
        self, hook: MetricsHook, home: LocalTopics
    ) -> None:
        topic = home.topic("orders")
        topic.publish([Message(event.header.id, encode(event)) for event in (Event.new("c", {}) for _ in range(5))])
        first, second = topic.receive("g", 2)
        topic.release("g", [first])
        topic.dead_letter("g", [second], "no")
        hook.started(engine(home, in_flight=7, calls=2, hung=1, errors={"orders": ""}))
        found = values(hook)
        assert [found[name,] for name in ("in_flight", "calls", "hung")] == [7, 2, 1]
        of_group = [found[name, "orders", "g"] for name in ("lag", "waiting", "dead_letters")]
        assert of_group == [3, 1, 1]
        assert found["up", "orders"] == 1

    def test_a_topic_in_trouble_is_down(self, hook: MetricsHook, home: LocalTopics) -> None:
        hook.started(engine(home, errors={"orders": "out of reach"}))
        assert values(hook)["up", "orders"] == 0

    def test_a_run_that_is_over_is_asked_no_more_and_counts_stay(self, hook: MetricsHook, home: LocalTopics) -> None:
        hook.started(engine(home))
        call(hook)
        hook.stopped(engine(home))
        found = values(hook)
        assert found["succeeded_total", "orders", "bill"] == 1
        assert ("in_flight",) not in found

    def test_counters_of_the_engine_go_on_over_several_runs(self, hook: MetricsHook, home: LocalTopics) -> None:
        """Given two runs, then the engine's counters are those of both."""
        for _ in range(2):
            run = engine(home)
            run.counts = EngineStats(received=3, unwanted=1)
            hook.started(run)
            hook.stopped(run)
        hook.started(run)
        text = generate_latest(hook.registry()).decode()
        assert "balog_engine_received_total 9.0" in text
        assert "balog_engine_unwanted_total 3.0" in text

    def test_a_consumer_adds_the_counters_of_its_sink(self, hook: MetricsHook, home: LocalTopics) -> None:
        class Sinking(Consumer):
            def samples(self) -> Iterator[StatSample]:
                return SinkStats(delivered=5).samples({"sink": self.name})

        run = engine(home)
        run.consumers = [("orders", Sinking(print, "orders", name="statsd"))]
        hook.started(run)
        assert 'balog_sink_delivered_total{sink="statsd"} 5.0' in generate_latest(hook.registry()).decode()

    def test_registering_it_asks_no_server(self, hook: MetricsHook) -> None:
        class Untouchable:
            def topic(self, name: str) -> None:
                raise AssertionError("asked")

        hook.started(engine(Untouchable()))
        hook.registry()


class Asked:
    """Topics that count how often they are asked."""

    def __init__(self) -> None:
        self.times = 0
        self.error: Exception | None = None

    def topic(self, name: str) -> "Asked":
        return self

    def exists(self) -> bool:
        return True

    def group_state(self, group: str) -> GroupState:
        self.times += 1
        if self.error:
            raise self.error
        return GroupState(group, self.times, 0, 0, 0, 0)


class TestLag:
    def test_an_answer_is_good_for_some_seconds(self) -> None:
        topics, now = Asked(), [100.0]
        lag = Lag(topics, ["a", "a"], "g", 10, clock=lambda: now[0])
        seen = []
        for seconds in (0, 5, 4.9, 0.1, 9):
            now[0] += seconds
            seen.append(lag.states()["a"].position)
        assert seen == [1, 1, 1, 2, 2]

    def test_a_topic_out_of_reach_has_no_state_and_is_asked_again_later(self) -> None:
        topics, now = Asked(), [0.0]
        topics.error = TopicError("gone")
        lag = Lag(topics, ["a"], "g", 10, clock=lambda: now[0])
        assert lag.states() == {}
        topics.error = None
        assert lag.states() == {}
        now[0] = 10
        assert "a" in lag.states()

    def test_a_topic_that_does_not_answer_holds_up_nobody_and_others_are_told(self) -> None:
        release = threading.Event()

        class Stuck(Asked):
            def topic(self, name: str) -> "Asked":
                if name == "z":
                    assert release.wait(30)
                return self

        topics = Stuck()
        lag = Lag(topics, ["a", "z"], "g", 0, timeout=0.2)
        assert list(lag.states()) == ["a"]
        assert list(lag.states()) == ["a"]
        assert topics.times == 1, "no second question while the first one is out"
        release.set()
        wait_for(lambda: len(lag.states()) == 2)

    def test_a_topic_that_does_not_exist_yet_is_told_from_one_out_of_reach(self, home: LocalTopics) -> None:
        assert Lag(home, ["orders"], "g").states() == {"orders": None}
