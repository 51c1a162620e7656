"""What balog.testing offers to tests of handlers."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from balog.consumers import Consumer, ConsumerHub, PartialFailure, Reject, Retry, consumer_config
from balog.event import Event, decode
from balog.testing import MemoryTopics, assert_no_dead_letters, publish, run_until_empty
from balog.topics import open_topics

TOPIC = "orders"
pytest_plugins = ["pytester"]


def seen(**arguments: Any) -> tuple[Callable[..., None], list[Any]]:
    """Give a handler with these arguments of ``consumer_config``, and what it has seen so far."""
    found: list[Any] = []

    @consumer_config(topic=TOPIC, name="tests.handler", **arguments)
    def handler(settings: Any, event: Any) -> None:
        found.append([one.payload["n"] for one in event] if isinstance(event, list) else event.payload["n"])

    return handler, found


def failing(*errors: BaseException, **arguments: Any) -> tuple[Callable[..., None], list[float]]:
    """Give a handler that raises these and then succeeds, and when it was called."""
    script, times = list(errors), []

    @consumer_config(topic=TOPIC, name="tests.failing", **arguments)
    def handler(settings: Any, event: Any) -> None:
        times.append(time.monotonic())
        if script:
            raise script.pop(0)

    return handler, times


class TestPublish:
    def test_payloads_become_events_and_events_stay_what_they_are(self, topics: MemoryTopics) -> None:
        own = Event.new("own.channel", {"n": 2}, context={"run_id": "r7"})
        given = publish(topics, TOPIC, {"n": 1}, own, channel="a.b", level="ERROR", context={"application": "x"})
        assert given[1] is own
        assert (given[0].header.channel, given[0].level) == ("a.b", "ERROR")
        stored = topics.topic(TOPIC).peek()
        assert [decode(message.body).payload for message in stored] == [{"n": 1}, {"n": 2}]
        assert [message.key for message in stored] == [None, "r7"]

    def test_bytes_are_a_message_that_is_no_event(self, topics: MemoryTopics) -> None:
        assert publish(topics, TOPIC, b"\xff\x00") == []
        assert [message.body for message in topics.topic(TOPIC).peek()] == [b"\xff\x00"]


class TestRunUntilEmpty:
    def test_a_function_gets_what_it_wants_and_the_rest_is_counted(self, topics: MemoryTopics) -> None:
        handler, found = seen(where="payload.n > 1")
        publish(topics, TOPIC, {"n": 1}, {"n": 2}, {"n": 3})
        counts = run_until_empty(handler, topics)
        assert found == [2, 3]
        assert (counts.received, counts.succeeded, counts.unwanted, counts.dead) == (3, 2, 1, 0)
        publish(topics, TOPIC, {"n": 4})
        assert run_until_empty(handler, topics).received == 1

    def test_stacked_declarations_of_a_function_all_count(self, topics: MemoryTopics) -> None:
        found: list[str] = []

        @consumer_config(topic="a", name="tests.a")
        @consumer_config(topic="b", name="tests.b")
        def handler(settings: Any, event: Event) -> None:
            found.append(event.payload["from"])

        publish(topics, "a", {"from": "a"})
        publish(topics, "b", {"from": "b"})
        run_until_empty(handler, topics)
        assert sorted(found) == ["a", "b"]

    def test_several_handlers_and_consumers_and_hubs_run_together(self, topics: MemoryTopics) -> None:
        first, found = seen()
        others: list[Any] = []
        hub = ConsumerHub()
        hub.add(Consumer(lambda settings, event: others.append("hub"), TOPIC, name="tests.of-hub"))
        lone = Consumer(lambda settings, event: others.append("lone"), TOPIC, name="tests.lone")
        publish(topics, TOPIC, {"n": 1})
        run_until_empty([first, lone, hub], topics)
        assert (found, sorted(others)) == ([1], ["hub", "lone"])

    def test_a_package_is_scanned(
        self, topics: MemoryTopics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "made_for_this_test.py").write_text(
            "from balog.consumers import consumer_config\n"
            "@consumer_config(topic='{env}-orders')\n"
            "def say(settings, event): print(settings['env'], event.payload['n'])\n"
        )
        monkeypatch.syspath_prepend(str(tmp_path))
        publish(topics, "dev-orders", {"n": 5})
        run_until_empty("made_for_this_test", topics, settings={"env": "dev"})
        assert capsys.readouterr().out == "dev 5\n"

    def test_batches_and_coroutines_run_as_they_do_in_production(self, topics: MemoryTopics) -> None:
        batch, batches = seen(batch=(3, 0.1))
        awaited: list[int] = []
        script: list[BaseException] = [Retry("busy", 3600), ValueError("no")]  # without waiting

        @consumer_config(topic=TOPIC, name="tests.async", backoff=(3600, 3600))
        async def wait(settings: Any, event: Event) -> None:
            await asyncio.sleep(0)
            if script:
                raise script.pop(0)
            awaited.append(event.payload["n"])

        publish(topics, TOPIC, *({"n": number} for number in range(7)))
        run_until_empty([batch, wait], topics)
        assert sorted(n for batch in batches for n in batch) == sorted(awaited) == list(range(7))
        assert max(map(len, batches)) == 3

    def test_an_own_operator_names_topics_and_calls_handlers(self, topics: MemoryTopics) -> None:
        class Operator:
            def get_topic(self, consumer: Consumer) -> str:
                return f"of-{consumer.topic}"

            def process_event(self, consumer: Consumer, event: Event) -> object:
                return consumer.func({"by": "operator"}, event)

        got: list[Any] = []
        consumer = Consumer(lambda settings, event: got.append(settings), TOPIC, name="tests.own")
        publish(topics, "of-orders", {"n": 1})
        run_until_empty(consumer, topics, operator=Operator())
        assert got == [{"by": "operator"}]

    @pytest.mark.parametrize(
        "error",
        [
            ConnectionError("down"),
            Retry("busy", after=3600),
            Retry("busy"),
        ],
    )
    def test_what_fails_is_tried_again_without_waiting(self, topics: MemoryTopics, error: BaseException) -> None:
        """Given a backoff of an hour, then both repetitions come long before it."""
        handler, times = failing(error, error, backoff=(3600, 3600))
        publish(topics, TOPIC, {"n": 1})
        counts = run_until_empty(handler, topics, timeout=60)
        assert (counts.succeeded, counts.dead, len(times)) == (1, 0, 3)

    def test_neither_a_batch_that_is_not_full_nor_a_retry_in_a_partial_failure_waits(
        self, topics: MemoryTopics
    ) -> None:
        """Given waits of an hour, then the batches come within the run's time all the same."""
        calls: list[list[int]] = []

        @consumer_config(topic=TOPIC, name="tests.partly", batch=(10, 3600.0), backoff=(3600, 3600))
        def partly(settings: Any, events: list[Event]) -> None:
            calls.append([event.payload["n"] for event in events])
            if len(calls) == 1:
                ids = [event.header.id for event in events]
                raise PartialFailure({ids[0]: Retry("busy", 3600), ids[1]: "no luck", ids[2]: Reject("never")})

        publish(topics, TOPIC, *({"n": number} for number in range(4)))
        counts = run_until_empty(partly, topics)
        assert (counts.succeeded, counts.dead) == (3, 1)
        assert sorted(n for call in calls[1:] for n in call) == [0, 1]

    def test_a_handler_that_says_retry_for_ever_ends_with_what_is_left(self, topics: MemoryTopics) -> None:
        def never(settings: Any, event: Event) -> None:
            raise Retry("the other side is down")

        publish(topics, TOPIC, {"n": 1})
        with pytest.raises(AssertionError) as caught:
            run_until_empty(Consumer(never, TOPIC, name="tests.never"), topics, timeout=2)
        said = str(caught.value).splitlines()
        assert said[0] == "not empty after 2 s"
        assert said[1].startswith("    orders: 0 never received")
        assert said[-1] == "    tests.never raised Retry: the other side is down"

    def test_a_handler_that_hangs_does_not_hang_the_test(self, topics: MemoryTopics) -> None:
        go_on = threading.Event()
        publish(topics, TOPIC, {"n": 1})
        hanging = Consumer(lambda settings, event: go_on.wait(), TOPIC, name="tests.hanging")
        try:
            with pytest.raises(AssertionError, match="not empty after 1 s"):
                run_until_empty(hanging, topics, timeout=1)
        finally:
            go_on.set()

    def test_the_declaration_itself_is_not_changed(self, topics: MemoryTopics) -> None:
        consumer = Consumer(lambda settings, event: None, TOPIC, name="tests.kept", backoff=(60, 600))
        publish(topics, TOPIC, {"n": 1})
        run_until_empty(consumer, topics)
        assert consumer.backoff == (60, 600)

    def test_options_reach_the_engine(self, topics: MemoryTopics) -> None:
        handler, times = failing(*[ValueError("no")] * 9)
        publish(topics, TOPIC, {"n": 1})
        counts = run_until_empty(handler, topics, max_attempts=2, group="other")
        assert (counts.failed, counts.dead, len(times)) == (2, 1, 2)
        assert topics.topic(TOPIC).dead_letters("other")

    def test_it_runs_on_topics_of_any_kind(self, tmp_path: Path) -> None:
        handler, found = seen()
        with open_topics(f"local:{tmp_path}") as home:
            publish(home, TOPIC, {"n": 1}, {"n": 2})
            run_until_empty(handler, home)
            assert_no_dead_letters(home)
        assert found == [1, 2]

    def test_what_is_no_handler_is_refused_by_name(self, topics: MemoryTopics) -> None:
        def plain(settings: Any, event: Event) -> None: ...

        with pytest.raises(TypeError, match=r"plain.* is no handler: expected a function with @consumer_config"):
            run_until_empty(plain, topics)


class TestAssertNoDeadLetters:
    def test_nothing_given_up_passes(self, topics: MemoryTopics) -> None:
        assert_no_dead_letters(topics)

    def test_each_letter_is_shown_with_reason_consumer_and_traceback(self, topics: MemoryTopics) -> None:
        handler, _ = failing(*[ValueError("rows < 0")] * 9, retries=2)
        [event] = publish(topics, TOPIC, {"n": 41})
        run_until_empty(handler, topics)
        with pytest.raises(AssertionError) as caught:
            assert_no_dead_letters(topics)
        said = str(caught.value)
        assert said.startswith("expected no dead letters of group balog\n")
        assert f"{TOPIC} {event.header.id}, delivered 3 times, given up by tests.failing: " in said
        assert "ValueError: rows < 0" in said
        assert "raise script.pop(0)" in said
        assert '"payload":{"n":41}' in said

    def test_a_message_that_is_no_event_is_shown(self, topics: MemoryTopics) -> None:
        handler, _ = seen()
        publish(topics, TOPIC, b"\xffgarbage")
        run_until_empty(handler, topics)
        with pytest.raises(AssertionError, match="garbage"):
            assert_no_dead_letters(topics)

    def test_those_of_a_group_are_counted(self, topics: MemoryTopics) -> None:
        handler, _ = failing(*[Reject("never")] * 30)
        publish(topics, TOPIC, *({"n": number} for number in range(30)))
        run_until_empty(handler, topics, group="other")
        assert_no_dead_letters(topics)
        with pytest.raises(AssertionError, match=r"(?s)group other.*… and 20 more of orders"):
            assert_no_dead_letters(topics, group="other")


def test_topics_of_one_test_are_not_those_of_the_next(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import pytest
        @pytest.mark.parametrize("n", [1, 2])
        def test_empty(topics, n):
            from balog.testing import publish
            assert topics.names() == []
            publish(topics, "orders", {"n": n})
    """)
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=2)


def test_importing_it_brings_no_engine_and_no_client_of_a_server() -> None:
    heavy = {"boto3", "botocore", "confluent_kafka", "redis", "sqlite3", "urllib3", "venusian", "asyncio", "sqlglot"}
    code = f"import sys, balog.testing; print(sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
