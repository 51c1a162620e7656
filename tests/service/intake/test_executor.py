"""Calls that block, done by threads for an event loop."""

import asyncio
import threading

import pytest

from balog.service.intake.executor import DaemonExecutor

pytestmark = pytest.mark.anyio


async def test_calls_are_done_beside_each_other_by_so_many_threads() -> None:
    workers = DaemonExecutor(3, "test")
    together = threading.Barrier(3)
    names = [workers.submit(lambda: (together.wait(10), threading.current_thread().name)[1]) for _ in range(3)]
    assert len({await work.future for work in names}) == 3
    many = [workers.submit(lambda: threading.current_thread().name) for _ in range(50)]
    assert len({await work.future for work in many}) <= 3
    workers.close()


async def test_a_call_that_has_not_begun_can_be_withdrawn_and_never_begins() -> None:
    workers = DaemonExecutor(1, "test")
    done: list[str] = []
    gate = threading.Event()
    first = workers.submit(lambda: (gate.wait(10), done.append("first")))
    second = workers.submit(lambda: done.append("second"))
    assert second.cancel()
    gate.set()
    await first.future
    assert not first.cancel()
    await workers.submit(lambda: done.append("third")).future
    assert done == ["first", "third"]
    workers.close()


def test_an_answer_that_nobody_waits_for_harms_nobody() -> None:
    gate, ended = threading.Event(), threading.Event()

    async def test() -> None:
        workers = DaemonExecutor(1, "test")
        left = workers.submit(lambda: gate.wait(10))
        left.future.cancel()
        workers.submit(lambda: (gate.wait(10), ended.set()))
        workers.close()

    asyncio.run(test())
    gate.set()
    assert ended.wait(10)
