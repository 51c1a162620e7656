"""A sink in a handler's hands: what it does not take reaches the engine as the outcome that it is."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from balog.common.errors import ConfigError
from balog.common.secrets import Secret
from balog.consumers import Halt, Reject, Retry
from balog.consumers import sink_adapter as module
from balog.consumers.running.exit_callbacks import running
from balog.consumers.sink_adapter import SinkAdapter
from balog.event import Event
from balog.sinks import Delivery, SinkError, SinkOptions
from balog.sinks.pagerduty import PagerDutySinkConfig
from tests.waiting import Clock


class ScriptedConfig(SinkOptions, kw_only=True):
    """Builds sinks that do what the script says, and notes in ``log`` what is done with them."""

    script: list[Any]
    log: list[str]

    @property
    def name(self) -> str:
        return "scripted"

    def build(self) -> ScriptedSink:
        self.log.append("build")
        return ScriptedSink(self)


class ScriptedSink:
    def __init__(self, config: ScriptedConfig) -> None:
        self._config = config

    def open(self) -> None:
        self._config.log.append("open")
        self._do()

    def write(self, batch: Sequence[Delivery]) -> None:
        self._config.log.append(f"write {len(batch)}")
        self._do()

    def _do(self) -> None:
        step = self._config.script.pop(0) if self._config.script else None
        if step is not None:
            raise step

    def close(self) -> None:
        self._config.log.append("close")
        self._do()


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock(1000.0)
    monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr("balog.common.backoff.random.random", lambda: 1.0)
    return clock


def adapter(*script: Any) -> tuple[SinkAdapter, list[str]]:
    log: list[str] = []
    return SinkAdapter(ScriptedConfig(script=list(script), log=log)), log


def some(count: int) -> list[Event]:
    return [Event.new("a.b", {"n": number}) for number in range(count)]


def test_a_sink_is_opened_once_and_gets_each_batch_whole() -> None:
    way, log = adapter()
    way.send(some(3))
    way.send(some(2))
    assert log == ["build", "open", "write 3", "write 2"]


def test_a_side_that_is_down_asks_for_a_retry_after_the_time_that_it_named() -> None:
    way, _ = adapter(None, SinkError("busy", retry_after=7.0))
    with pytest.raises(Retry, match="busy") as caught:
        way.send(some(3))
    assert caught.value.after == 7.0


def test_a_side_that_is_down_is_asked_again_only_when_it_is_due_however_many_wait(clock: Clock) -> None:
    way, log = adapter(None, *[SinkError("down")] * 4)
    waits = []
    for _ in range(4):
        with pytest.raises(Retry, match="down") as asked:
            way.send(some(1))
        with pytest.raises(Retry, match="down") as spared:
            way.send(some(1))
        assert spared.value.after == pytest.approx(asked.value.after)
        waits.append(asked.value.after)
        clock.now += asked.value.after
    assert waits == pytest.approx([0.1, 0.2, 0.4, 0.8])
    assert log.count("write 1") == 4
    way.send(some(1))
    assert log.count("write 1") == 5


def test_after_success_the_waits_begin_anew(clock: Clock) -> None:
    way, _ = adapter(None, SinkError("down"), SinkError("down"), None, SinkError("down"))
    waits = []
    for _ in range(4):
        try:
            way.send(some(1))
        except Retry as retry:
            waits.append(retry.after)
            clock.now += retry.after or 0.0
    assert waits == pytest.approx([0.1, 0.2, 0.1])


def test_a_sink_that_cannot_be_opened_is_opened_again_with_the_next_events(clock: Clock) -> None:
    way, log = adapter(SinkError("nobody there"))
    with pytest.raises(Retry, match="nobody there"):
        way.send(some(1))
    clock.now += 1
    way.send(some(1))
    assert log == ["build", "open", "open", "write 1"]


def test_a_sink_that_cannot_be_opened_is_no_event_s_fault_whatever_the_reason() -> None:
    way, log = adapter(SinkError("not allowed", retryable=False), OSError("no such device"))
    for _ in range(2):
        with pytest.raises(Retry, match="not allowed"):
            way.send(some(3))
    assert log == ["build", "open"]


def test_what_a_config_lacks_when_it_is_opened_ends_the_run() -> None:
    way, _ = adapter(ConfigError("ca.pem: No such file", path="ca_file"))
    with pytest.raises(Halt, match=r"^ca_file: ca\.pem"):
        way.send(some(1))


def test_tries_that_fail_together_make_the_wait_no_longer_than_one(clock: Clock) -> None:
    together = threading.Barrier(4)

    class Down(ScriptedSink):
        def write(self, batch: Sequence[Delivery]) -> None:
            together.wait(60)
            raise SinkError("down")

    class DownConfig(ScriptedConfig):
        def build(self) -> ScriptedSink:
            return Down(self)

    way = SinkAdapter(DownConfig(script=[], log=[]))

    def fail() -> float:
        with pytest.raises(Retry, match="down") as caught:
            way.send(some(1))
        return caught.value.after or 0.0

    with ThreadPoolExecutor(4) as pool:
        waits = [task.result() for task in [pool.submit(fail) for _ in range(4)]]
    assert waits == pytest.approx([0.1] * 4)


def test_closing_waits_for_what_is_under_way() -> None:
    begun, go_on = threading.Event(), threading.Event()

    class Slow(ScriptedSink):
        def write(self, batch: Sequence[Delivery]) -> None:
            begun.set()
            go_on.wait(60)
            super().write(batch)

    class SlowConfig(ScriptedConfig):
        def build(self) -> ScriptedSink:
            return Slow(self)

    log: list[str] = []
    way = SinkAdapter(SlowConfig(script=[], log=log))
    with ThreadPoolExecutor(2) as pool:
        sent = pool.submit(way.send, some(1))
        begun.wait(60)
        closed = pool.submit(way.close)
        assert not closed.done()
        go_on.set()
        sent.exception(60)
        closed.result(60)
    assert log[-1] == "close"
    assert log.count("close") == 1


def test_an_event_that_is_refused_for_good_is_rejected() -> None:
    way, _ = adapter(None, SinkError("too large", retryable=False))
    with pytest.raises(Reject, match="too large"):
        way.send(some(1))


def test_a_closed_adapter_finishes_its_sink_and_later_begins_with_a_new_one() -> None:
    way, log = adapter()
    way.send(some(1))
    way.close()
    way.close()
    way.send(some(1))
    assert log == ["build", "open", "write 1", "close", "build", "open", "write 1"]


def test_what_a_sink_cannot_finish_at_the_end_of_a_run_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    way, _ = adapter(None, None, SinkError("2 files stay hidden"))
    with running():
        way.send(some(1))
    assert capsys.readouterr().err == "balog: scripted: 2 files stay hidden\n"


def test_a_config_that_cannot_be_is_refused_before_any_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    with pytest.raises(Halt, match="NO_SUCH_KEY is not set"):
        SinkAdapter(PagerDutySinkConfig(routing_key=Secret(env="NO_SUCH_KEY")))

    with pytest.raises(ConfigError, match="NO_SUCH_KEY is not set") as caught:
        SinkAdapter(PagerDutySinkConfig(routing_key=Secret(env="NO_SUCH_KEY")), is_owned=True)
    assert not isinstance(caught.value, Halt)
