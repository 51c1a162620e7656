"""How commands end on SIGINT and SIGTERM, as real processes with their children."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

BALOG = [sys.executable, "-m", "balog"]
PATIENCE = 120.0  # seconds; a safety net on a busy machine

linux = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="reads /proc")


def processes() -> dict[int, tuple[int, str]]:
    """Return the parent and the command line of each living process."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                state, parent = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[:2]
                line = Path(f"/proc/{name}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if state not in "ZX":
                found[int(name)] = int(parent), line
    return found


def below(root: int) -> dict[int, str]:
    """Return the command lines of a process's descendants."""
    living, found = processes(), {root: ""}
    while new := {pid: line for pid, (parent, line) in living.items() if parent in found and pid not in found}:
        found.update(new)
    del found[root]
    return found


@pytest.fixture
def interrupted(tmp_path: Path) -> Callable[..., Any]:
    """Runs a command, signals it at a moment, and returns its exit code and its lines on stderr, without progress."""

    def run(words: list[str], moment: Callable[[int], bool], number: int, *, group: bool = False) -> Any:
        scratch = tmp_path / "scratch"
        scratch.mkdir(exist_ok=True)
        with subprocess.Popen(
            [*BALOG, *words],
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, "TMPDIR": str(scratch)},
        ) as process:
            ends = time.monotonic() + PATIENCE
            while not moment(process.pid) and process.poll() is None and time.monotonic() < ends:
                time.sleep(0.02)
            assert process.poll() is None, process.stderr and process.stderr.read()
            children = below(process.pid)
            (os.killpg if group else os.kill)(process.pid, number)
            try:
                said = process.communicate(timeout=PATIENCE)[1].splitlines()
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        left = {pid: line for pid, (_, line) in processes().items() if pid in children}
        assert not left
        assert not [path.name for path in scratch.iterdir() if path.name.startswith("balog-")]
        return process.returncode, [line for line in said if not line.endswith("which takes some seconds")]

    return run


def has(words: str) -> Callable[[int], bool]:
    """Return the moment at which a descendant's command line has these words."""
    return lambda pid: any(words in line for line in below(pid).values())


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder of events that takes a while to read."""
    root = tmp_path_factory.mktemp("events")
    header = {"channel": "c", "timestamp": "2026-11-20T07:46:12Z", "level": "INFO", "context": {}}
    lines = [
        json.dumps({"schema": "0.1.0", "header": {**header, "id": f"LG{n:022d}"}, "payload": {"cls_type": "log"}})
        for n in range(100_000)
    ]
    (root / "a.jsonl").write_text("\n".join(lines) + "\n")
    return str(root)


@pytest.fixture(scope="module")
def two_files(archive: str) -> str:
    """A folder of files that two processes read for a while."""
    first = Path(archive) / "a.jsonl"
    root = Path(archive).with_name("events-two")
    root.mkdir()
    for name in "ab":
        (root / f"{name}.jsonl").write_bytes(first.read_bytes() * 4)
    return str(root)


@linux
@pytest.mark.spark
@pytest.mark.parametrize(
    ("moment", "number", "group"),
    [
        (has(""), signal.SIGTERM, False),
        (has("SparkSubmit"), signal.SIGINT, False),
        (has("pyspark.daemon"), signal.SIGINT, True),
    ],
    ids=["first child", "Java starts", "workers start, Ctrl-C"],
)
def test_a_report_ends_with_one_line_and_without_children_whenever_the_signal_comes(
    interrupted: Any, archive: str, moment: Any, number: int, group: bool
) -> None:
    code, said = interrupted(["report", archive, "--no-html", "--engine", "spark"], moment, number, group=group)
    word = "interrupted" if number == signal.SIGINT else "terminated"
    assert (code, said) == (128 + number, [f"balog report: {word}"])


@linux
@pytest.mark.parametrize("delay", [0, 0.2])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_a_report_whose_processes_just_start_to_read_ends_with_one_line(
    interrupted: Any, two_files: str, number: int, delay: float
) -> None:
    """Ctrl-C reaches the processes that read while Python starts in them, too."""

    def reads(pid: int) -> bool:
        found = has("raw_task")(pid)
        if found:
            time.sleep(delay)
        return found

    words = ["report", two_files, "--no-html", "--engine", "duckdb"]
    code, said = interrupted(words, reads, number, group=number == signal.SIGINT)
    word = "interrupted" if number == signal.SIGINT else "terminated"
    assert (code, said) == (128 + number, [f"balog report: {word}"])


@linux
@pytest.mark.spark
@pytest.mark.parametrize(("command", "number"), [("load", signal.SIGINT), ("filter", signal.SIGTERM)])
def test_commands_on_spark_end_alike(interrupted: Any, archive: str, tmp_path: Path, command: str, number: int) -> None:
    document = {"filters": [{"name": "f", "sources": ["s"], "to": "t", "where": "level = 'INFO'"}]}
    (tmp_path / "document.json").write_text(json.dumps(document))
    words = {
        "load": ["load", archive, "--tables", "tables"],
        "filter": ["filter", "f", archive, "--config", "document.json", "--to", "out"],
    }[command]
    code, said = interrupted(words, has("SparkSubmit"), number)
    assert (code, len(said)) == (128 + number, 1)
    assert said[0].startswith(f"balog {command}: ")


@linux
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_a_tap_that_is_verified_ends_with_the_command(interrupted: Any, number: int) -> None:
    tap = ["tap", "verify", "--", sys.executable, "-c", "import time; time.sleep(300)"]
    code, said = interrupted(tap, has("time.sleep(300)"), number)
    assert code == 128 + number
    assert said[-1] == f"balog tap: {'interrupted' if number == signal.SIGINT else 'terminated'}"


def test_an_interruption_while_a_command_is_imported_names_no_command() -> None:
    program = """
import os, signal
from balog import cli
cli._Commands.get_command = lambda *arguments: os.kill(os.getpid(), signal.SIGINT)
cli.main(["consume", "handlers"])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (done.returncode, done.stderr) == (130, "balog: interrupted\n")
