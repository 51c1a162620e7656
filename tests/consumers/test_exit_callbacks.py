"""What handlers opened is closed when the last run is over, and not before."""

import subprocess
import sys

import pytest

from balog.consumers.running.exit_callbacks import at_end, running


def test_it_is_called_once_when_the_last_run_is_over() -> None:
    called: list[str] = []
    with running():
        with running():
            at_end(lambda: called.append("closed"))
        assert called == []
    assert called == ["closed"]
    with running():
        pass
    assert called == ["closed"]


def test_what_was_opened_last_is_closed_first_and_a_failure_stops_none(capsys: pytest.CaptureFixture[str]) -> None:
    called: list[int] = []

    def fail() -> None:
        raise ValueError("no\nmore")

    with running():
        at_end(lambda: called.append(1))
        at_end(fail)
        at_end(lambda: called.append(2))
    assert called == [2, 1]
    assert capsys.readouterr().err == "balog: at the end of the run: ValueError: no more\n"


def test_it_is_called_after_a_run_that_failed_too() -> None:
    called: list[str] = []
    at_end(lambda: called.append("closed"))
    with pytest.raises(KeyError), running():
        raise KeyError("x")
    assert called == ["closed"]


def test_without_a_run_it_is_called_when_the_process_ends() -> None:
    code = "from balog.consumers.running.exit_callbacks import at_end; at_end(lambda: print('closed'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "closed\n"
