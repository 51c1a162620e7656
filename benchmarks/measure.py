"""Measure several ways of doing the same work: interleaved rounds, medians, ratios."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Callable
from functools import wraps
from importlib.metadata import version
from pathlib import Path

import click

from balog.distribution import DISTRIBUTION

__all__ = ["archive_options", "interleaved", "machine", "medians", "processor_seconds"]


def interleaved(ways: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Ask each way for its seconds once a round, after a round that does not count.

    Whatever else the machine does in the meantime falls on all of them.
    """
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        for name, measure in ways.items():
            took = measure()
            if number:
                seconds[name].append(took)
    return seconds


def medians(seconds: dict[str, list[float]]) -> dict[str, float]:
    """Give each way's median, in seconds."""
    return {name: statistics.median(times) for name, times in seconds.items()}


def machine(*packages: str) -> str:
    """Say in one line what was measured on: architecture, cores, Python, versions of the packages."""
    versions = ", ".join(f"{name} {version(DISTRIBUTION if name == 'balog' else name)}" for name in packages)
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}; {versions}"


def processor_seconds() -> float:
    """Give the processor time that this process and all below it have had until now, in seconds (Linux).

    Waiting for what else the machine does is not in it, but what a shared cache loses to that is.
    """
    ticks, parents = {}, {}
    for process in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = process.read_text().rpartition(") ")[2].split()
        except OSError:  # it has ended
            continue
        number = int(process.parent.name)
        parents[number] = int(fields[1])
        ticks[number] = sum(map(int, fields[11:15]))  # its own and its ended children's
    ours = {os.getpid()}
    while more := {number for number, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return sum(ticks.get(number, 0) for number in ours) / os.sysconf("SC_CLK_TCK")


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
