"""Failures are told by lines, of which there are never more than somebody reads."""

import logging
from typing import Any

import pytest

from balog.consumers import Retry
from balog.consumers.running import failure_log
from balog.event import Event
from balog.topics import Message
from tests.consumers.runs import Scripted
from tests.waiting import Clock, wait_for


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock(1000.0)
    monkeypatch.setattr(failure_log, "time", clock)
    return clock


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Any:
    caplog.set_level(logging.INFO, "balog.consumers.failures")
    return lambda: [record.getMessage() for record in caplog.records if record.name == "balog.consumers.failures"]


def test_of_many_failures_of_a_consumer_the_first_have_lines_and_the_rest_a_number(bench: Any, said: Any) -> None:
    bench.publish(*({"n": n} for n in range(failure_log.MAX_LINES + 50)))

    def fail_once(settings: object, event: Event) -> None:
        if event.payload["n"] == failure_log.MAX_LINES + 49:
            raise KeyError("n")

    bench.run(Scripted(then=ValueError("no price")), fail_once, max_attempts=1)
    lines = said()
    assert (
        len([line for line in lines if line.endswith("dead-lettered: ValueError: no price")]) == failure_log.MAX_LINES
    )
    assert [line.partition(" more times in ")[0] for line in lines if "more times" in line] == ["handler0 failed 50"]
    assert [line for line in lines if line.startswith("handler1 failed on")], "another's lines are its own"


def test_what_is_no_event_has_lines_of_its_own(bench: Any, said: Any) -> None:
    bench.orders.publish([Message(f"m{n}", b"\xff") for n in range(failure_log.MAX_LINES + 7)])
    bench.run(lambda settings, event: None, max_attempts=1)
    lines = said()
    assert len(lines) == failure_log.MAX_LINES + 1
    assert lines[-1].startswith("orders: dead-lettered what is not an event 7 more times in ")


def test_the_number_is_told_when_its_period_is_over_and_lines_begin_anew(clock: Clock, said: Any) -> None:
    lines = failure_log.FailureLog()

    def fail(times: int) -> None:
        for n in range(times):
            lines.not_routed("orders", f"m{n}", ValueError("odd"), is_event=False)

    fail(failure_log.MAX_LINES + 3)
    lines.sum_up()
    assert len(said()) == failure_log.MAX_LINES
    clock.now += failure_log.PERIOD
    lines.sum_up()
    assert said()[failure_log.MAX_LINES :] == ["orders: dead-lettered what is not an event 3 more times in 10 s"]
    lines.sum_up(at_once=True)
    fail(1)
    assert said()[failure_log.MAX_LINES + 1 :] == ["m0 in orders is not an event, dead-lettered: odd"]


def test_nothing_is_counted_for_nobody(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "balog.consumers.failures")
    lines = failure_log.FailureLog()
    for n in range(failure_log.MAX_LINES + 3):
        lines.not_routed("orders", f"m{n}", ValueError("odd"), is_event=False)
    caplog.set_level(logging.INFO, "balog.consumers.failures")
    lines.sum_up(at_once=True)
    assert not caplog.records


def test_what_waits_for_the_other_side_is_told_so_too(bench: Any, said: Any) -> None:
    bench.publish({})
    bench.run(Scripted(*[Retry("busy", after=0)] * (failure_log.MAX_LINES + 5)))
    lines = said()
    assert len(lines) == failure_log.MAX_LINES + 1
    assert lines[-1].startswith("handler0 put events off 5 more times in ")


def test_a_run_tells_the_number_at_the_end_of_each_period(bench: Any, said: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(failure_log, "PERIOD", 0.5)
    monkeypatch.setattr(failure_log, "MAX_LINES", 1)
    bench.publish(*({} for _ in range(20)))
    with bench.running(Scripted(then=ValueError("no price")), max_attempts=1):
        wait_for(lambda: any("more times" in line for line in said()))
