"""A command that begins anew when its package's source changes, seen from outside."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path

import pytest

from balog.cli.reloader import find_mistake, find_roots, find_sources
from balog.errors import ConfigError

# Stands in for `balog consume`: says what its package says, and drains when asked.
CHILD = """
import signal, sys, threading
from balog.cli.reloader import live_with
live_with(int(sys.argv[-1]))
from balog.signals import StopSignals
with StopSignals(lambda number: print("told", flush=True)) as stop:
    import team
    print("began", team.SAYS, flush=True)
    if team.SAYS == "end":
        sys.exit(0)
    if team.SAYS == "fail":
        sys.exit(3)
    while not stop.came() or team.SAYS == "hang":
        threading.Event().wait(0.02)
    print("drained", team.SAYS, flush=True)
"""

PARENT = """
import sys
from balog.cli import reloader
reloader.LOOK_SECONDS = 0.05
reloader.GRACE = float(sys.argv[1])
command = [sys.executable, "-c", sys.argv[2]]
run = reloader.Reloader("team.handlers", command, 0.0, lambda line: print("#", line, flush=True))
print("pid", flush=True)
sys.exit(run.run())
"""


class Reloaded:
    """The command under the reloader, and the source that it runs."""

    def __init__(self, root: Path, grace: float = 60.0) -> None:
        self.package = root / "team"
        self.package.mkdir()
        self._stamp = time.time_ns()
        self.root, self.grace = root, grace

    def start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PARENT, str(self.grace), CHILD], cwd=self.root, stdout=subprocess.PIPE, text=True
        )
        assert self.line() == "pid"

    def write(self, source: str, name: str = "__init__.py") -> None:
        path = self.package / name
        path.write_text(source)
        self._stamp += 1_000_000_000  # whatever the file system's clock can tell apart
        os.utime(path, ns=(self._stamp, self._stamp))

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def end(self, *numbers: int) -> int:
        for number in numbers:
            self.process.send_signal(number)
        return self.process.wait(timeout=60)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Reloaded]]:
    made: list[Reloaded] = []

    def make(source: str, **options: float) -> Reloaded:
        made.append(Reloaded(tmp_path, **options))
        made[-1].write(source)
        made[-1].start()
        return made[-1]

    yield make
    for one in made:
        one.process.kill()
        one.process.communicate()


class TestReloading:
    def test_a_change_drains_the_old_and_begins_the_new(self, make: Callable[..., Reloaded]) -> None:
        reloaded = make("SAYS = 1")
        assert reloaded.line() == "began 1"
        reloaded.write("SAYS = 22")
        assert [reloaded.line() for _ in range(4)] == [
            "# the source changed, restarting",
            "told",
            "drained 1",
            "began 22",
        ]

    def test_a_new_file_counts_too(self, make: Callable[..., Reloaded]) -> None:
        reloaded = make("SAYS = 1")
        assert reloaded.line() == "began 1"
        (reloaded.package / "sub").mkdir()
        reloaded.write("", "sub/more.py")
        assert reloaded.line().endswith("restarting")

    def test_a_mistake_is_shown_and_waited_out_while_the_old_goes_on(self, make: Callable[..., Reloaded]) -> None:
        reloaded = make("SAYS = 1")
        assert reloaded.line() == "began 1"
        reloaded.write("SAYS = (\nx y")
        line = reloaded.line()
        assert line.startswith("# team/__init__.py:")
        assert line.endswith("waiting for a change; the running consumer goes on unchanged")
        reloaded.write("SAYS = 2")
        assert [reloaded.line() for _ in range(4)][-2:] == ["drained 1", "began 2"]

    def test_with_a_mistake_at_the_start_nothing_runs_until_it_is_mended(self, make: Callable[..., Reloaded]) -> None:
        reloaded = make("SAYS = = 1")
        assert reloaded.line().endswith("waiting for a change")
        reloaded.write("SAYS = 2")
        assert reloaded.line() == "began 2"

    def test_a_command_that_fails_begins_again_when_the_source_changes(self, make: Callable[..., Reloaded]) -> None:
        reloaded = make("SAYS = 'fail'")
        assert reloaded.line() == "began fail"
        assert reloaded.line() == "# the consumer ended with exit code 3; it restarts when the source changes"
        reloaded.write("SAYS = 'mended'")
        assert reloaded.line() == "began mended"

    def test_a_command_that_is_done_ends_it(self, make: Callable[..., Reloaded]) -> None:
        reloaded = make("SAYS = 'end'")
        assert reloaded.line() == "began end"
        assert reloaded.end() == 0

    def test_one_that_does_not_drain_is_killed(self, make: Callable[..., Reloaded]) -> None:
        reloaded = make("SAYS = 'hang'", grace=0.3)
        assert reloaded.line() == "began hang"
        reloaded.write("SAYS = 2")
        assert [reloaded.line() for _ in range(4)] == [
            "# the source changed, restarting",
            "told",
            "# the consumer does not end and is killed; its events in flight are delivered again",
            "began 2",
        ]


class TestStopping:
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_the_first_signal_drains_the_command(self, make: Callable[..., Reloaded], number: int) -> None:
        reloaded = make("SAYS = 1")
        assert reloaded.line() == "began 1"
        assert reloaded.end(number) == 0
        assert [reloaded.line(), reloaded.line(), reloaded.line()] == ["told", "drained 1", ""]

    def test_the_second_ends_both(self, make: Callable[..., Reloaded]) -> None:
        reloaded = make("SAYS = 'hang'")
        assert reloaded.line() == "began hang"
        reloaded.process.send_signal(signal.SIGTERM)
        assert reloaded.line() == "told"
        assert reloaded.end(signal.SIGTERM) == 128 + signal.SIGTERM
        assert [reloaded.line(), reloaded.line()] == ["told", ""]

    def test_while_it_waits_for_a_change_it_ends_at_once(self, make: Callable[..., Reloaded]) -> None:
        reloaded = make("SAYS = = 1")
        reloaded.line()
        assert reloaded.end(signal.SIGTERM) == 0

    def test_when_the_reloader_is_killed_the_command_drains(self, make: Callable[..., Reloaded]) -> None:
        reloaded = make("SAYS = 1")
        assert reloaded.line() == "began 1"
        assert reloaded.end(signal.SIGKILL) == -signal.SIGKILL
        assert [reloaded.line(), reloaded.line(), reloaded.line()] == ["told", "drained 1", ""]


class TestSources:
    def test_the_top_package_is_watched_and_never_imported(self, tmp_path: Path, monkeypatch) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "nice" / "sub" / "__pycache__").mkdir(parents=True)
        for name in ("__init__.py", "sub/a.py", "sub/a.txt", "sub/__pycache__/b.py"):
            (tmp_path / "nice" / name).write_text("raise SystemExit")
        found = find_sources(find_roots("nice.sub.a"))
        assert sorted(found) == [str(tmp_path / "nice" / name) for name in ("__init__.py", "sub/a.py")]
        assert "nice" not in sys.modules

    def test_of_a_module_its_file(self, tmp_path: Path, monkeypatch) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "alone.py").write_text("")
        assert list(find_sources(find_roots("alone"))) == [str(tmp_path / "alone.py")]

    @pytest.mark.parametrize("name", ["not_there", "sys", "", ".a"])
    def test_without_a_source_it_is_refused(self, name: str) -> None:
        with pytest.raises(ConfigError, match="no package"):
            find_roots(name)

    @pytest.mark.parametrize(
        ("source", "says"),
        [
            (b"a = 1\nb = (", "a.py:2: "),
            (b"\xff\xfe", "a.py"),
            (b"a\0b", "a.py"),
            (b"# coding: nope", "a.py"),
            (b"1", ""),
        ],
    )
    def test_a_mistake_is_said_with_file_and_line(self, tmp_path: Path, monkeypatch, source: bytes, says: str) -> None:
        monkeypatch.chdir(tmp_path)
        Path("a.py").write_bytes(source)
        found = find_mistake({"a.py": (0, 0), "gone.py": (0, 0)})
        assert found.startswith(says)
        assert bool(found) == bool(says)
        assert "\n" not in found


def test_a_package_that_only_an_editable_install_s_finder_knows_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "src" / "mapped_team"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise AssertionError('it was imported')")

    class Finder:
        @staticmethod
        def find_spec(name: str, path: object = None, target: object = None) -> "ModuleSpec | None":
            return spec_from_file_location(name, package / "__init__.py") if name == "mapped_team" else None

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder])
    assert find_roots("mapped_team.handlers") == [package]
