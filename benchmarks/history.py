"""Remember each benchmark's ratios in ``history.jsonl``, and print beside each one the last from the same machine."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

import click
import msgspec

HISTORY = Path(__file__).with_name("history.jsonl")


class Ratio(msgspec.Struct, frozen=True, kw_only=True):
    """A ratio that a benchmark printed.

    ``spread`` is the distance of the quartiles of the rounds' ratios, 0 for a single round. ``machine`` is the kind:
    processor, cores and Python.
    """

    benchmark: str
    title: str
    value: float
    spread: float
    target: str
    commit: str
    machine: str
    at: str


def show_ratio(title: str, above: Sequence[float], below: Sequence[float], target: str = "") -> None:
    """Print the ratio of two medians as ``ratio: 0.74 × structlog (target ≤ 0.65; last 0.75)``, and remember it.

    It is marked as worse if it is behind the last one by more than both spreads. A quick run remembers nothing.

    Args:
        title: what the ratio is to, unique in its benchmark.
        above: seconds of each round of the way above the line, in the order of the rounds.
        below: seconds of each round of the way below the line.
        target: ``≤ 0.65`` or ``≥ 0.5``; more is better without one.
    """
    each = [one / other for one, other in zip(above, below)]
    quartiles = statistics.quantiles(each, n=4) if len(each) > 1 else [0.0, 0.0, 0.0]
    name = " ".join([Path(sys.argv[0]).stem, *sys.argv[1:]])
    ratio = Ratio(
        benchmark=name,
        title=title,
        value=round(statistics.median(above) / statistics.median(below), 3),
        spread=round(quartiles[2] - quartiles[0], 3),
        target=target,
        commit=_commit(),
        machine=_machine(),
        at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
    )
    notes = [f"target {target}"] if target else []
    if (last := _last(ratio)) is not None:
        notes.append(f"last {last.value:.2f}" + (", WORSE by more than the spread" if is_worse(ratio, last) else ""))
    print(f"ratio: {ratio.value:.2f} × {title}" + (f" ({'; '.join(notes)})" if notes else ""), flush=True)
    if not _is_quick():
        with HISTORY.open("ab") as file:
            file.write(msgspec.json.encode(ratio) + b"\n")


def is_worse(ratio: Ratio, last: Ratio) -> bool:
    """Whether a ratio is behind the last one by more than the spreads of both."""
    lost = ratio.value - last.value if ratio.target.startswith("≤") else last.value - ratio.value
    return lost > max(ratio.spread, last.spread)


def _is_quick() -> bool:
    context = click.get_current_context(silent=True)
    return "--quick" in sys.argv or bool(context is not None and context.params.get("quick"))


def _last(ratio: Ratio) -> Ratio | None:
    if not HISTORY.exists():
        return None
    lines = HISTORY.read_bytes().splitlines()
    before = (msgspec.json.decode(line, type=Ratio) for line in reversed(lines))
    same = (ratio.benchmark, ratio.title, ratio.machine)
    return next((one for one in before if (one.benchmark, one.title, one.machine) == same), None)


def _commit() -> str:
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=HISTORY.parent, capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def _machine() -> str:
    model = platform.machine()
    cpus = Path("/proc/cpuinfo")
    for line in cpus.read_text().splitlines() if cpus.exists() else ():
        if line.startswith("model name"):
            model = line.partition(": ")[2]
            break
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}"
