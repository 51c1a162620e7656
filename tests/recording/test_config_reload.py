import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from balog import configure, get_logger, set_level
from balog.errors import ConfigError
from balog.event import Event
from balog.recording import configuration


@pytest.fixture(autouse=True)
def configuration_of_its_own(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Restore the configuration, the levels and the handler of SIGHUP."""
    for name in ("BALOG_OUTPUT", "BALOG_LEVEL", "BALOG_RUN_ID", "BALOG_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    before, overrides = configuration.swap(None), configuration.swap_overrides({})
    handler = signal.getsignal(signal.SIGHUP)
    yield
    configure([])
    assert signal.getsignal(signal.SIGHUP) == handler
    configuration.swap_overrides(overrides)
    configuration.swap(before)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A config file."""
    path = tmp_path / "logger.json"
    write(path, levels={"app": "WARNING"})
    return path


def write(path: Path, **settings: object) -> None:
    path.with_suffix(".new").write_text(json.dumps(settings))
    path.with_suffix(".new").replace(path)


def lowest(name: str = "app") -> str:
    return next(level for level in ("DEBUG", "INFO", "WARNING", "ERROR") if get_logger(name).is_enabled_for(level))


def wait(until: Callable[[], object]) -> None:
    end = time.monotonic() + 30
    while not until():
        assert time.monotonic() < end
        time.sleep(0.01)


def hang_up() -> None:
    os.kill(os.getpid(), signal.SIGHUP)


class TestSignal:
    def test_the_file_is_read_again(self, path: Path) -> None:
        """Existing loggers follow; arguments still go before the file."""
        events: list[Event] = []
        configure(events.append, config=path, reload=True, application="mine")
        assert lowest() == "WARNING"
        write(path, levels={"app": "DEBUG"}, application="other", output="stderr")
        hang_up()
        wait(lambda: lowest() == "DEBUG")
        get_logger("app").debug("x")

        assert [event.header.context["application"] for event in events] == ["mine"]

    def test_a_wrong_file_keeps_the_configuration(self, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """One line on stderr; the next signal reads the mended file."""

        configure("stderr", config=path, reload=True)
        for wrong in ('{"level": "loud"}', "{", '{"levels": 7, "x": 1}'):
            path.write_text(wrong)
            hang_up()
            wait(lambda: capsys_grew(capsys, "the earlier configuration stays"))
            assert lowest() == "WARNING"
        path.unlink()
        hang_up()
        wait(lambda: capsys_grew(capsys, "the earlier configuration stays"))
        write(path, levels={"app": "DEBUG"})
        hang_up()
        wait(lambda: lowest() == "DEBUG")

    def test_the_file_replaces_levels_that_were_set(self, path: Path) -> None:
        """A pattern in the file goes before ``set_level``; others stay set."""
        configure("stderr", config=path, reload=True)
        set_level("app", "DEBUG")
        set_level("other", "ERROR")
        write(path, levels={"app": "ERROR"})
        hang_up()
        wait(lambda: lowest() == "ERROR")
        assert lowest("other") == "ERROR"

    def test_the_application_s_own_handler_is_called_too(self, path: Path) -> None:
        """It is restored by a configuration without ``reload``."""
        received: list[int] = []

        def own(number: int, frame: object) -> None:
            received.append(number)

        before = signal.signal(signal.SIGHUP, own)
        try:
            configure("stderr", config=path, reload=True)
            write(path, levels={"app": "DEBUG"})
            hang_up()
            wait(lambda: lowest() == "DEBUG")
            assert received == [signal.SIGHUP]
            configure("stderr")
            assert signal.getsignal(signal.SIGHUP) is own
        finally:
            signal.signal(signal.SIGHUP, before)

    @pytest.mark.parametrize("calls_ours", [False, True])
    def test_a_handler_that_the_application_sets_later_is_called_too(self, path: Path, calls_ours: bool) -> None:
        """The next ``configure`` handles the signal again, without a loop where the handler calls the earlier one."""
        received: list[int] = []
        before = signal.getsignal(signal.SIGHUP)
        configure("stderr", config=path, reload=True)
        ours = signal.getsignal(signal.SIGHUP)
        assert callable(ours)

        def own(number: int, frame: FrameType | None) -> None:
            received.append(number)
            if calls_ours:
                ours(number, frame)

        signal.signal(signal.SIGHUP, own)
        try:
            configure("stderr", config=path, reload=True)
            write(path, levels={"app": "DEBUG"})
            hang_up()
            wait(lambda: lowest() == "DEBUG")
            assert received == [signal.SIGHUP]
            configure("stderr")
            assert signal.getsignal(signal.SIGHUP) is own
        finally:
            signal.signal(signal.SIGHUP, before)

    def test_the_path_stays_when_the_process_changes_its_folder(
        self, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A relative path is that of the time of ``configure``."""
        monkeypatch.chdir(tmp_path)
        configure("stderr", config=path.name, reload=True)
        monkeypatch.chdir("/")
        write(path, levels={"app": "DEBUG"})
        hang_up()
        wait(lambda: lowest() == "DEBUG")

    def test_without_reload_the_signal_ends_the_process(self) -> None:
        """It is opt-in."""
        code = "import balog, os, signal; balog.configure('stderr'); os.kill(os.getpid(), signal.SIGHUP); print('x')"
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGHUP

    def test_a_file_named_by_the_environment_turns_it_on(self, path: Path) -> None:
        """The program needs no line of code, and a log under load loses nothing."""
        write(path, reload=True, output=f"file:{path.parent}/a", level="INFO")
        code = (
            "import balog, os, signal, sys, time\n"
            "log = balog.get_logger('a')\n"
            "log.debug('0')\n"
            "print('ready', flush=True)\n"
            "while not log.is_enabled_for('DEBUG'):\n"
            "    log.info('x')\n"
            "for number in range(1000): log.info('x')\n"
            "log.debug('end')\n"
        )
        environment = {**os.environ, "BALOG_CONFIG": str(path)}
        with subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            write(path, reload=True, output=f"file:{path.parent}/a", level="DEBUG")
            process.send_signal(signal.SIGHUP)
            assert process.wait(60) == 0
        messages = [json.loads(line)["payload"]["message"] for line in (path.parent / "a").read_bytes().splitlines()]
        assert messages[-1] == "end"
        assert len(messages) > 1000
        assert "0" not in messages


class TestFile:
    def test_a_changed_file_is_read_after_the_interval(self, path: Path) -> None:
        """Without a signal, also after the file was wrong for a time."""
        configure("stderr", config=path, reload=0.05)
        write(path, levels={"app": "DEBUG"})
        wait(lambda: lowest() == "DEBUG")
        path.write_text("{")
        time.sleep(0.2)
        assert lowest() == "DEBUG"
        write(path, levels={"app": "ERROR"})
        wait(lambda: lowest() == "ERROR")

    def test_an_unchanged_file_is_not_read(self, path: Path) -> None:
        """The recorder stays, with its queues and counts."""
        configure("stderr", config=path, reload=0.02)
        recorder = configuration.current()
        time.sleep(0.2)
        assert configuration.current() is recorder

    def test_the_child_of_a_fork_looks_too(self, path: Path) -> None:
        """Threads do not survive a fork."""
        configure("stderr", config=path, reload=0.05)
        child = os.fork()
        if child == 0:
            try:
                wait(lambda: lowest() == "DEBUG")
            except BaseException:
                os._exit(1)
            os._exit(0)
        write(path, levels={"app": "DEBUG"})
        assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("wrong", [0, -1, 100_000, "yes", float("nan")])
def test_wrong_intervals_are_refused(wrong: object) -> None:
    """One line names the argument."""
    with pytest.raises(ConfigError, match=r"^configure\(reload=…\): "):
        configure(reload=wrong)  # type: ignore[arg-type]


def capsys_grew(capsys: pytest.CaptureFixture[str], text: str) -> bool:
    """Return whether a line with the text was written since the last call."""
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) <= 1
    return bool(lines) and text in lines[0]


class TestRace:
    def test_a_configuration_wins_over_a_reload_under_way(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The reload has read the file before, and comes to its end after it."""
        configure("stderr", config=path, reload=True)
        build, has_read, may_go_on = configuration.build_recorder, threading.Event(), threading.Event()
        ended: list[bool] = []

        def build_late(*args: Any, **options: Any) -> Any:
            recorder = build(*args, **options)
            if threading.current_thread() is not threading.main_thread():
                has_read.set()
                ended.append(may_go_on.wait(30))
            return recorder

        monkeypatch.setattr(configuration, "build_recorder", build_late)
        hang_up()
        assert has_read.wait(30)
        configure("stderr", levels={"app": "ERROR"}, reload=True)
        reloads = [thread for thread in threading.enumerate() if thread.name == "balog reload"]
        may_go_on.set()
        for thread in reloads:
            thread.join(30)

        assert ended == [True]
        assert lowest() == "ERROR"
        write(path, levels={"app": "DEBUG"})
        hang_up()
        wait(lambda: len(ended) == 2)
        assert lowest() == "ERROR"
