"""Years of runs that generators of other authors write, and how well ``volume: {}`` finds what they marked.

A generator writes a JSON object a line, ordered by ``started``: ``pipeline``, ``started``, ``seconds``, ``ok``,
``error``, ``streams`` (rows by name) and ``anomaly`` (null, or its ``stream`` and ``kind``; a null stream is all of the
run's). It is a file of lines, or a Python file with ``runs(seed)`` or ``--seed``.

Matching: marked runs in a row are one anomaly of their stream, or of their pipeline if they name no stream. A firing of
a series is one alert. It is right if it fires at the end of a marked run; each other one is a false alarm. An anomaly
is found if an alert of its stream, or of any stream of its pipeline, fires at the end of one of its runs. Nothing is
marked in the first ``QUIET`` days, in which the monitor learns: alerts of that time are counted apart.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from balog.event import Event
from balog.event.payload import RunPayload, StreamCount
from balog.watch.config.monitors import MonitorConfig
from balog.watch.history.backtest import run_backtest

QUIET = 60
"""Days at the beginning whose alerts count for nothing."""

_MERGED = 2
"""Normal runs between two marked ones of the same anomaly, at most."""


class Found(NamedTuple):
    """What the alerts of a year found.

    Attributes:
        early: alerts of the first days.
        kinds: for each kind of anomaly, how many were found, and how many there are.
        wrong: pipeline, stream, time and reason of each false alarm.
        missed: pipeline, stream, time and kind of each anomaly that was not found.
    """

    right: int
    early: int
    kinds: dict[str, tuple[int, int]]
    wrong: list[tuple[str, str, datetime, str]]
    missed: list[tuple[str, str, datetime, str]]

    @property
    def precision(self) -> float:
        """The share of alerts that are right."""
        return self.right / max(self.right + len(self.wrong), 1)

    @property
    def recall(self) -> float:
        """The share of anomalies that are found."""
        found, planted = (sum(one[place] for one in self.kinds.values()) for place in (0, 1))
        return found / max(planted, 1)


class _Anomaly(NamedTuple):
    pipeline: str
    stream: str | None
    kind: str
    ends: list[datetime]


def read_runs(file: Path, seed: int) -> list[dict[str, Any]]:
    """Return the runs of a file of lines, or of a generator that runs in a process of its own."""
    if file.suffix != ".py":
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line]
    done = subprocess.run([sys.executable, str(file), "--seed", str(seed)], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def score_runs(runs: Iterable[dict[str, Any]], volume: dict[str, Any]) -> Found:
    """Return what a volume monitor finds in a year of runs."""
    ordered = sorted(((_end(run), run) for run in runs), key=lambda pair: pair[0])
    begun = ordered[0][0] + timedelta(days=QUIET)
    monitors = [msgspec.convert({"name": "rows", "volume": volume}, MonitorConfig)]
    events = [_event(end, run) for end, run in ordered]
    result = run_backtest(monitors, events, 0.0, ordered[-1][0].timestamp() + 1)
    anomalies = _anomalies(ordered)
    hit: set[int] = set()
    right, early, wrong = 0, 0, []
    for firing in result.firings:
        pipeline, stream = firing.labels.get("pipeline", ""), firing.labels.get("stream", "")
        until = firing.ended or datetime.max.replace(tzinfo=timezone.utc)
        marks = [
            number
            for number, one in enumerate(anomalies)
            if one.pipeline == pipeline
            and one.stream in (None, stream)
            and any(firing.started <= end < until for end in one.ends)
        ]
        hit.update(marks)
        if marks:
            right += 1
        elif firing.started < begun:
            early += 1
        else:
            wrong.append((pipeline, stream, firing.started, firing.reason))
    kinds: defaultdict[str, Counter[bool]] = defaultdict(Counter)
    for number, one in enumerate(anomalies):
        kinds[one.kind][number in hit] += 1
    missed = [one for number, one in enumerate(anomalies) if number not in hit]
    shares = {kind: (counts[True], counts.total()) for kind, counts in sorted(kinds.items())}
    return Found(right, early, shares, wrong, [(m.pipeline, m.stream or "*", m.ends[0], m.kind) for m in missed])


def _end(run: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(run["started"].replace("Z", "+00:00")) + timedelta(seconds=run["seconds"])


def _event(end: datetime, run: dict[str, Any]) -> Event:
    payload = RunPayload(
        outcome="succeeded" if run["ok"] else "failed",
        duration=run["seconds"],
        exit_code=0 if run["ok"] else 1,
        command=run["pipeline"],
        records=sum(run["streams"].values()),
        streams=[StreamCount(stream=name, records=rows) for name, rows in run["streams"].items()],
        started=run["started"],
    )
    return Event.new("tap.run", msgspec.to_builtins(payload), timestamp=end)


def _anomalies(ordered: list[tuple[datetime, dict[str, Any]]]) -> list[_Anomaly]:
    """Return the anomalies: marked runs of one kind with at most ``_MERGED`` others between them."""
    found: list[_Anomaly] = []
    count: Counter[str] = Counter()
    last: dict[tuple[str, str | None, str], tuple[int, _Anomaly]] = {}
    for end, run in ordered:
        pipeline, mark = run["pipeline"], run["anomaly"]
        count[pipeline] += run["ok"]
        if mark is None or not run["ok"]:
            continue
        key = pipeline, mark["stream"], mark["kind"]
        before = last.get(key)
        if before is None or count[pipeline] - before[0] > _MERGED + 1:
            before = 0, _Anomaly(*key, [])
            found.append(before[1])
        before[1].ends.append(end)
        last[key] = count[pipeline], before[1]
    return found


def report(file: Path, seeds: list[int], volume: dict[str, Any], *, verbose: bool) -> None:
    """Print precision and recall for each seed, with the alerts that are wrong and what was missed if asked for."""
    found = [score_runs(read_runs(file, seed), volume) for seed in seeds]
    for seed, one in zip(seeds, found):
        print(line_of(f"{file.stem}, seed {seed}" if file.suffix == ".py" else file.name, one))
        for what, rows in (("false", one.wrong), ("missed", one.missed)) if verbose else ():
            for pipeline, stream, when, text in rows:
                print(f"  {what:6} {when:%a %Y-%m-%d %H:%M} {pipeline}/{stream}: {text}")
    total = Found(
        sum(one.right for one in found),
        sum(one.early for one in found),
        {kind: tuple(sum(one.kinds.get(kind, (0, 0))[place] for one in found) for place in (0, 1))  # type: ignore[misc]
         for kind in sorted({kind for one in found for kind in one.kinds})},
        [row for one in found for row in one.wrong],
        [row for one in found for row in one.missed],
    )  # fmt: skip
    print(line_of("all", total))


def line_of(name: str, found: Found) -> str:
    """Return the line of a table."""
    kinds = "  ".join(f"{kind} {hits}/{planted}" for kind, (hits, planted) in found.kinds.items())
    return (
        f"{name:22} precision {found.precision:.3f}  recall {found.recall:.3f}  false {len(found.wrong):3}"
        f"  first {QUIET} days {found.early:3}  {kinds}"
    )
