"""The thread that takes steps beside the engine goes on after an error, and reports it once."""

import threading

import pytest

from balog.common import signals
from balog.common.errors import BalogError


def test_an_error_is_reported_once_until_a_step_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "TICK_SECONDS", 0.001)
    said: list[str] = []
    is_over = threading.Event()
    results = iter([BalogError("no disk"), BalogError("no disk"), ValueError("x"), None, ValueError("x")])

    class Steps(signals.StepThread):
        def step(self) -> None:
            result = next(results, is_over)
            if isinstance(result, Exception):
                raise result
            if result is is_over:
                is_over.set()

    with Steps("steps", said.append):
        assert is_over.wait(60)
    assert said == ["no disk", "ValueError: x", "ValueError: x"]
