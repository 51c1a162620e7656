import io
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from balog.analytics.progress import ProgressDisplay, progress
from tests.waiting import wait_for


class TaskSession:
    """A session of Spark that has finished three of eight tasks."""

    class sparkContext:
        @staticmethod
        def statusTracker() -> Any:
            stage = SimpleNamespace(numTasks=8, numCompletedTasks=3)
            return SimpleNamespace(getActiveStageIds=lambda: [7], getStageInfo=lambda number: stage)


def test_without_a_terminal_nothing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("Starting") as say:
        say("Reading")
        with say.watching(None):  # type: ignore[arg-type]
            pass
    assert capsys.readouterr().err == ""


def test_without_a_terminal_a_slow_start_is_a_line() -> None:
    said: list[str] = []
    with progress("Starting Java", said.append, is_slow=True) as display:
        display("Reading")
    with progress("Reading files", said.append):
        pass
    assert said == ["Starting Java"]
    assert "balog-progress" not in {thread.name for thread in threading.enumerate()}


def test_a_closed_stderr_does_not_end_the_work() -> None:
    def say(line: str) -> None:
        raise BrokenPipeError

    with progress("Starting Java", say, is_slow=True) as display:
        display("Reading")


def test_lines_report_the_step_and_its_tasks_from_time_to_time() -> None:
    said: list[str] = []
    came = threading.Semaphore(0)

    def say(line: str) -> None:
        said.append(line)
        came.release()

    display = ProgressDisplay(say=say, step="Starting Java", every=0.01)
    assert came.acquire(timeout=30)
    display("Reading 3 files")
    with display.watching(TaskSession()):  # type: ignore[arg-type]
        while not said[-1].startswith("Reading 3 files (3/8 tasks), "):
            assert came.acquire(timeout=30)
    display.close()
    assert said[0] == "Starting Java, 0 s"


def test_a_terminal_sees_tasks() -> None:
    notes: list[str] = []
    bars = SimpleNamespace(add_task=lambda *_, **__: 1, update=lambda _, note, **__: notes.append(note))
    display = ProgressDisplay(bars, every=0.01)
    with display.watching(TaskSession()):  # type: ignore[arg-type]
        wait_for(lambda: "3/8 tasks" in notes)
    display.close()


def a_terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Put one in the place of stderr; no fixture, since pytest puts back its own before each test."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    return sys.stderr  # type: ignore[return-value]


def test_what_goes_to_a_file_goes_there_also_while_a_terminal_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, file = a_terminal(monkeypatch), io.StringIO()
    monkeypatch.setattr(sys, "stdout", file)
    with progress("Asking") as say:
        print("1,2", file=say.stopping(sys.stdout))
        shown = terminal.getvalue()
        print("3,4")
    assert file.getvalue() == "1,2\n3,4\n"
    assert "Asking" in shown
    assert "3,4" not in terminal.getvalue()


def test_what_is_printed_finds_no_bar_in_its_way_until_the_next_words(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch)
    with progress("Reading") as say:
        say.stop()
        before = terminal.getvalue()
        print("rows", file=say.stopping(terminal))
        assert terminal.getvalue() == before + "rows\n"
        say("Compacting")
    assert "Compacting" in terminal.getvalue()


def test_words_reach_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch)
    with progress("Starting Spark") as say:
        say("Reading 12 files [a-z]")
    assert "Reading 12 files [a-z]" in terminal.getvalue()
