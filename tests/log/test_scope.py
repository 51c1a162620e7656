"""``flushing``: its keys are bound while it runs, and what it logged is delivered before it ends."""

import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from balog import configure, flushing, get_logger
from balog.event import Event, decode
from balog.event.ids import new_id
from balog.topics import open_topics
from tests.stand_ins.programs import run_python

log = get_logger("scope")


def delivered(folder: Path) -> list[Event]:
    """Return the events that a new reader finds in the topic."""
    topics = open_topics(f"local:{folder}")
    try:
        return [decode(message.body) for message in topics.topic("events").receive(new_id(), 1000)]
    finally:
        topics.close()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    configure(f"local:{tmp_path}")
    yield tmp_path
    configure("stderr")


class TestFlushing:
    def test_a_block_has_delivered_its_events_with_its_keys(self, folder: Path) -> None:
        with flushing(task="a"):
            log.info("done", payload={"n": 1})
        (event,) = delivered(folder)
        assert (event.payload["n"], event.header.context["task"]) == (1, "a")

    def test_a_block_that_raises_has_delivered_them_too(self, folder: Path) -> None:
        @flushing()
        def work() -> None:
            with flushing(task="a"):
                log.info("done", payload={"n": 1})
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            work()
        assert len(delivered(folder)) == 1

    def test_the_keys_end_with_the_block(self, folder: Path) -> None:
        with flushing(task="a"):
            pass
        with flushing():
            log.info("done", payload={})
        (event,) = delivered(folder)
        assert "task" not in event.header.context

    def test_a_function_returns_its_value_after_the_delivery(self, folder: Path) -> None:
        @flushing(task="a")
        def work(n: int, *, more: int) -> int:
            log.info("done", payload={"n": n})
            return n + more

        assert work(1, more=2) == 3
        assert [event.header.context["task"] for event in delivered(folder)] == ["a"]
        assert (work.__name__, list(inspect.signature(work).parameters)) == ("work", ["n", "more"])

    def test_a_generator_delivers_at_its_end_and_when_it_is_closed(self, folder: Path) -> None:
        @flushing(task="a")
        def work() -> Iterator[int]:
            for n in range(3):
                log.info("done", payload={"n": n})
                yield n

        assert list(work()) == [0, 1, 2]
        assert len(delivered(folder)) == 3
        closed = work()
        next(closed)
        closed.close()  # type: ignore[attr-defined]
        assert len(delivered(folder)) == 4

    def test_a_coroutine_delivers_while_its_loop_goes_on(self, folder: Path) -> None:
        @flushing(task="a")
        async def work(n: int) -> int:
            await asyncio.sleep(0)
            log.info("done", payload={"n": n})
            return n

        async def both() -> list[int]:
            return await asyncio.gather(work(1), work(2))

        assert asyncio.run(both()) == [1, 2]
        assert sorted(event.payload["n"] for event in delivered(folder)) == [1, 2]

    def test_an_async_generator_is_rejected(self) -> None:
        async def work() -> AsyncIterator[int]:
            yield 1

        with pytest.raises(TypeError, match="async generator"):
            flushing()(work)

    def test_a_sink_that_fails_holds_the_block_for_its_deadline_only(self) -> None:
        program = """
import time, balog
balog.configure("https://127.0.0.1:9", level="INFO")
began = time.monotonic()
with balog.flushing(0.3):
    balog.get_logger("a").info("x", payload={})
assert time.monotonic() - began < 3
"""
        run_python(program)


class TestTheRun:
    def test_processes_that_start_before_the_first_event_belong_to_the_run(self) -> None:
        program = """
import os, subprocess, sys, balog
balog.configure("stderr")
log = balog.get_logger("a")
child = os.fork()
log.info("x", payload={})
if child == 0: os._exit(0)
os.waitpid(child, 0)
subprocess.run([sys.executable, "-c", "import balog; balog.get_logger('a').info('x', payload={})"], check=True)
"""
        contexts = [json.loads(line)["header"]["context"] for line in run_python(program).stderr.splitlines()]
        assert len({found["run_id"] for found in contexts}) == 1
        assert len({found["process"] for found in contexts}) == 3
