"""Run commands as a shell does, and measure time, processor time and memory of the whole process tree (Linux)."""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks.measure import interleaved, processor_seconds

__all__ = ["CommandRun", "run_command", "run_commands"]

_LOOK = 0.02  # seconds between looks at the memory
_RARELY = 25  # looks between looks at the processor time, for processes that nobody waits for, as Spark's Java


class CommandRun(NamedTuple):
    """A run of a command, or the medians of several.

    Attributes:
        seconds: from its start to its end, Python's start included.
        processor: seconds of processor time, of all its processes.
        memory: the most memory of all its processes at a time in bytes; pages that several share count once.
    """

    seconds: float
    processor: float
    memory: int


def run_command(command: Sequence[str | Path], folder: Path) -> CommandRun:
    """Run a command in a folder; its output is thrown away.

    Raises:
        subprocess.CalledProcessError: it failed; the error has its stderr.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryFile() as errors:
        began, memory, spent, looks = time.perf_counter(), 0, 0.0, 0
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors
        )
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            memory, looks = max(memory, _memory_below(process.pid)), looks + 1
            if looks % _RARELY == 0:
                spent = max(spent, processor_seconds(process.pid))
            time.sleep(_LOOK)
        took, process.returncode = time.perf_counter() - began, os.waitstatus_to_exitcode(status)
        if process.returncode:
            errors.seek(0)
            raise subprocess.CalledProcessError(process.returncode, list(map(str, command)), None, errors.read())
    return CommandRun(took, max(spent, usage.ru_utime + usage.ru_stime), max(memory, usage.ru_maxrss * 1024))


def run_commands(commands: Mapping[str, Sequence[str | Path]], folder: Path, rounds: int) -> dict[str, CommandRun]:
    """Run commands in interleaved rounds; return the medians of each."""
    runs: dict[str, list[CommandRun]] = {name: [] for name in commands}

    def measure(name: str) -> float:
        runs[name].append(run_command(commands[name], folder))
        return runs[name][-1].seconds

    ways: dict[str, Callable[[], float]] = {name: partial(measure, name) for name in commands}
    interleaved(ways, rounds)
    return {
        name: CommandRun(*(type(column[0])(statistics.median(column)) for column in zip(*made[-rounds:])))
        for name, made in runs.items()
    }


def _memory_below(root: int) -> int:
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(path.parent.name)] = int(path.read_text().rpartition(") ")[2].split()[1])
        except (OSError, IndexError):  # it has ended
            continue
    ours = {root}
    while more := {pid for pid, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return sum(map(_proportional, ours))


def _proportional(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
