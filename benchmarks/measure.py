"""Measure several ways of doing the same work: interleaved rounds, medians, ratios."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Callable
from importlib.metadata import version

__all__ = ["interleaved", "machine", "medians"]


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
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}; {versions}"
