"""Measure several ways of doing the same work: interleaved rounds, medians, ratios."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from importlib.metadata import version
from pathlib import Path

import click

from balog.common.distribution import DISTRIBUTION

__all__ = [
    "archive_options",
    "busy_seconds",
    "interleaved",
    "machine",
    "medians",
    "peak_memory",
    "processes",
    "processor_seconds",
]


def interleaved(ways: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Ask each way for its seconds once a round, after a round that does not count; a single round has none before it.

    Whatever else the machine does in the meantime falls on all of them.
    """
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds + 1 if rounds > 1 else 1):
        for name, measure in ways.items():
            seconds[name].append(measure())
    return {name: took[-rounds:] for name, took in seconds.items()}


def medians(seconds: dict[str, list[float]]) -> dict[str, float]:
    """Give each way's median, in seconds."""
    return {name: statistics.median(times) for name, times in seconds.items()}


def machine(*packages: str) -> str:
    """Say in one line what was measured on: architecture, cores, Python, versions of the packages."""
    versions = ", ".join(f"{name} {version(DISTRIBUTION if name == 'balog' else name)}" for name in packages)
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}; {versions}"


def processor_seconds(root: int | None = None) -> float:
    """Return the processor time that a process and all below it have had until now, in seconds (Linux).

    Waiting for what else the machine does is not in it, but what a shared cache loses to that is.

    Args:
        root: the process's id; this process by default.
    """
    ticks = {pid: sum(map(int, fields[11:15])) for pid, fields in _status().items()}  # own and ended children's
    return sum(ticks.get(pid, 0) for pid in processes(root)) / os.sysconf("SC_CLK_TCK")


def busy_seconds() -> float:
    """Return the processor time that all processes of the machine have had since it started, in seconds (Linux)."""
    user, nice, system, _, _, *interrupts = map(int, Path("/proc/stat").read_text().splitlines()[0].split()[1:9])
    return (user + nice + system + sum(interrupts[:2])) / os.sysconf("SC_CLK_TCK")


def processes(root: int | None = None) -> dict[int, str]:
    """Return the names of a process (this one by default) and of all below it, by their ids (Linux)."""
    parents = {pid: int(fields[1]) for pid, fields in _status().items()}
    ours = {root or os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in ours} - ours:
        ours |= more
    names = {}
    for pid in ours:
        with suppress(OSError):  # it has ended
            names[pid] = Path(f"/proc/{pid}/comm").read_text().strip()
    return names


def peak_memory(pid: int) -> float:
    """Return the most memory that a process has had, in MB (Linux); 0 if it has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return 0.0


def _status() -> dict[int, list[str]]:
    """Return the fields of each process's ``stat``, from its state on, by id."""
    found = {}
    for process in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            found[int(process.parent.name)] = process.read_text().rpartition(") ")[2].split()
    return found


def archive_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a benchmark over generated archives the options ``--size``, ``--rounds``, ``--folder`` and ``--quick``.

    A quick run is one round over 2 MB.
    """

    @wraps(command)
    def asked(size: int, rounds: int, folder: Path, quick: bool) -> None:
        size, rounds = (2, 1) if quick else (size, rounds)
        command(size, rounds, folder)

    for option in (
        click.option("--quick", is_flag=True, help="A round over 2 MB: shows that it runs, measures nothing."),
        click.option(
            "--folder",
            type=click.Path(path_type=Path),
            default=Path("/tmp/balog-bench"),
            show_default=True,
            help="Where the events and tables are kept.",
        ),
        click.option("--rounds", default=3, show_default=True, help="Times that each is asked, after one to warm up."),
        click.option("--size", default=1100, show_default=True, help="Millions of bytes of events, decompressed."),
    ):
        asked = option(asked)
    return asked
