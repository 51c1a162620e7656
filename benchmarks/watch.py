"""Compare monitors with other ways to find faults, and measure what monitors cost.

    python -m benchmarks.watch [--quick] [--seed 31]
    python -m benchmarks.watch --generator FILE [--seed 31] [--seeds 5] [--verbose]

Accuracy: a year of each series in ``watch_series`` with planted faults. A fault is found if a firing overlaps it, or
begins within one run after it. A firing that overlaps no fault is a false alarm. Growth, daylight saving time and
holidays are no faults. The method was chosen with the seeds 11 to 13 and 21 to 23; the figures are medians of others.
All ways see the same runs:

- balog: three monitors with their defaults: freshness, volume, duration.
- A fixed threshold: 20 % around the range of the first 28 days, for records and for durations.
- A z-score: mean and standard deviation of the last 28 days, limit 3.
- Elementary's method as its documentation describes it (docs.elementary-data.com: data anomaly detection, training
  period, anomaly sensitivity): a z-score over the 14 days before, sensitivity 3, at least 14 values; also with its
  seasonality and 14 values of the season, which is more history than 14 days hold.

The others judge buckets: a run that is missing is a bucket with 0 records, judged at the end of the bucket.
"""

from __future__ import annotations

import argparse
import math
import resource
import statistics
import sys
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from balog.event import Event, decode, encode
from balog.event.payload import RunPayload, StreamCount
from balog.watch.bands.slots import slot_of
from balog.watch.config.monitors import MonitorConfig
from balog.watch.evaluation import Evaluation
from balog.watch.history.backtest import run_backtest
from balog.watch.observations import RunObserved
from benchmarks.measure import machine
from benchmarks.watch_generated import report
from benchmarks.watch_series import BERLIN, DAY, FAULTS, FIRST, HOUR, SHAPES, TRAINING, Fault, Run, Shape, make_year

Firings = list[tuple[float, float]]


class Score(NamedTuple):
    """What one way found in one year."""

    found: dict[str, list[float]]
    missed: dict[str, int]
    false: int


def by_balog(shape: Shape, runs: list[Run]) -> Firings:
    """Return the firings of balog's monitors."""
    hourly = shape.step < DAY
    freshness = {"every": "1h", "grace": "20m"} if hourly else {"every": "24h", "grace": "4h"}
    evaluation = Evaluation([
        _monitor(name="late", pipeline="p", freshness=freshness),
        _monitor(name="rows", timezone="Europe/Berlin", volume={}),
        _monitor(name="slow", duration={"p95_over": "2x", "against": "7d" if hourly else "28d"}),
    ])  # fmt: skip
    alerts, began, found = [], {}, []
    for run in sorted((run for run in runs if run.end is not None), key=lambda run: run.end or 0.0):
        report = RunPayload(
            outcome="succeeded",
            duration=run.duration,
            exit_code=0,
            command="p",
            streams=[StreamCount(stream="s", records=run.records)],
        )
        alerts += evaluation.observe(RunObserved(time=run.end or 0.0, pipeline="p", outcome="succeeded", report=report))
    alerts += evaluation.advance(runs[-1].slot + shape.step)
    for alert, when in alerts:
        if alert.state == "firing":
            began.setdefault(alert.key, when)
        elif alert.key in began:
            found.append((began.pop(alert.key), when))
    return [*found, *((when, runs[-1].slot + shape.step) for when in began.values())]


def _monitor(**fields: Any) -> MonitorConfig:
    return msgspec.convert({"name": "m", **fields}, MonitorConfig)


def by_fixed_threshold(shape: Shape, runs: list[Run]) -> Firings:
    """Return the firings of fixed limits around the range of the first weeks."""
    start = runs[: int(TRAINING * DAY / shape.step)]
    low, high = (choose(run.records for run in start) for choose in (min, max))
    longest = max(run.duration for run in start)
    verdicts = ((run, not low * 0.8 <= _records(run) <= high * 1.2 or run.duration > longest * 1.2) for run in runs)
    return list(_episodes(shape, verdicts))


def by_z_score(
    shape: Shape, runs: list[Run], count: int, least: int, season: Callable[[Run], Any] = lambda run: None
) -> Firings:
    """Return the firings of a z-score over the last values, of each season."""
    pasts: defaultdict[Any, tuple[deque[float], deque[float]]]
    pasts = defaultdict(lambda: (deque(maxlen=count), deque(maxlen=count)))
    verdicts = []
    for run in runs:
        records, durations = pasts[season(run)]
        bad = _is_outlier(records, _records(run), least)
        records.append(_records(run))
        if run.end is not None:
            bad |= _is_outlier(durations, run.duration, least)
            durations.append(run.duration)
        verdicts.append((run, bad))
    return list(_episodes(shape, verdicts))


def _is_outlier(past: deque[float], value: float, least: int) -> bool:
    if len(past) < least:
        return False
    mean = sum(past) / len(past)
    return abs(value - mean) > 3 * math.sqrt(sum((one - mean) ** 2 for one in past) / (len(past) - 1))


def _records(run: Run) -> float:
    return run.records if run.end is not None else 0.0


def _episodes(shape: Shape, verdicts: Any) -> Iterator[tuple[float, float]]:
    began = None
    for run, bad in verdicts:
        when = run.slot + shape.step if run.end is None else run.end
        if bad and began is None:
            began = when
        elif not bad and began is not None:
            yield began, when
            began = None
    if began is not None:
        yield began, math.inf


def season_of(shape: Shape) -> Callable[[Run], Any]:
    """Return the bucket of a run in its season."""
    hours = {"none": lambda hour: 0, "hour_of_day": lambda hour: hour % 24, "day_of_week": lambda hour: hour // 24}
    bucket = hours.get(shape.season, lambda hour: hour)
    return lambda run: bucket(slot_of(run.slot, 0.0, BERLIN).hour)


def ways(shape: Shape) -> dict[str, Callable[[list[Run]], Firings]]:
    """Return all ways by name."""
    per_day = int(DAY / shape.step)
    return {
        "balog": lambda runs: by_balog(shape, runs),
        "fixed threshold": lambda runs: by_fixed_threshold(shape, runs),
        "z-score": lambda runs: by_z_score(shape, runs, 28 * per_day, 14),
        "Elementary": lambda runs: by_z_score(shape, runs, 14 * per_day, 14),
        "Elementary, seasonal": lambda runs: by_z_score(shape, runs, 14, 14, season_of(shape)),
    }


def score(shape: Shape, faults: list[Fault], firings: Firings) -> Score:
    """Compare firings with faults; a firing of the training time counts for nothing."""
    found: dict[str, list[float]] = {kind: [] for kind in FAULTS}
    missed = dict.fromkeys(FAULTS, 0)
    firings = [one for one in firings if one[0] >= FIRST.timestamp() + TRAINING * DAY]
    right = set()
    for fault in faults:
        hits = [one for one in firings if one[0] <= fault.end + shape.step and one[1] > fault.begin]
        right.update(hits)
        if hits:
            found[fault.kind].append(max(min(one[0] for one in hits) - fault.begin, 0.0) / shape.step)
        else:
            missed[fault.kind] += 1
    return Score(found, missed, len(firings) - len([one for one in firings if one in right]))


class Accuracy(NamedTuple):
    """Precision and recall over the series of one seed, the mean delay in runs, and the share found of each fault."""

    precision: float
    recall: float
    delay: float
    shares: list[float]


def accuracy(seeds: list[int], shapes: tuple[Shape, ...], days: int) -> dict[str, Accuracy]:
    """Print precision, recall and delay of each way, and return the medians over the seeds."""
    found: defaultdict[str, list[Accuracy]] = defaultdict(list)
    for seed in seeds:
        scores: defaultdict[str, list[Score]] = defaultdict(list)
        for shape in shapes:
            runs, faults = make_year(shape, seed, days)
            for name, way in ways(shape).items():
                scores[name].append(score(shape, faults, way(runs)))
        for name, made in scores.items():
            found[name].append(_accuracy(made))
    print(f"{'median of seeds':22} precision  recall  delay  " + "  ".join(f"{kind:>7}" for kind in FAULTS))
    medians = {name: _median(parts) for name, parts in found.items()}
    for name, one in medians.items():
        print(_line_of(name, one))
    for seed, one in zip(seeds, found["balog"]):
        print(_line_of(f"balog, seed {seed}", one))
    return medians


def _accuracy(made: list[Score]) -> Accuracy:
    hits = {kind: [one for part in made for one in part.found[kind]] for kind in FAULTS}
    missed = {kind: sum(part.missed[kind] for part in made) for kind in FAULTS}
    right, lost, false = sum(map(len, hits.values())), sum(missed.values()), sum(part.false for part in made)
    return Accuracy(
        right / max(right + false, 1),
        right / max(right + lost, 1),
        statistics.fmean([one for kind in hits.values() for one in kind] or [math.nan]),
        [len(hits[kind]) / max(len(hits[kind]) + missed[kind], 1) for kind in FAULTS],
    )


def _median(parts: list[Accuracy]) -> Accuracy:
    precision, recall, delay = (statistics.median(one[place] for one in parts) for place in range(3))
    return Accuracy(precision, recall, delay, [statistics.median(kind) for kind in zip(*(one.shares for one in parts))])


def _line_of(name: str, one: Accuracy) -> str:
    shares = "  ".join(f"{share:7.2f}" for share in one.shares)
    return f"{name:22} {one.precision:9.3f}  {one.recall:6.3f}  {one.delay:5.2f}  {shares}"


def cost(series: int, events: int) -> None:
    """Print events a second and memory with full histories of many series."""
    pipelines = max(series // 10, 1)
    evaluation = Evaluation([_monitor(name="rows", volume={"seasonality": "hour_of_week"})])
    start = FIRST.timestamp()
    lines = []
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in range(pipelines):
        lines.append(_line(number, start, list(range(10))))
    for line in lines:
        evaluation.take(decode(line))
    for one in evaluation.series.values():
        _fill(one.memory, start)
    now = start + 28 * DAY
    measured = [_line(number % pipelines, now + number / 5000, [number // pipelines % 10]) for number in range(events)]
    began = time.perf_counter()
    for line in measured:
        evaluation.take(decode(line))
    took = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{len(evaluation.series):,} series of 672 values: {events / took:,.0f} events/s on one core, "
          f"{(peak - before) / 1024:.0f} MB more, {peak / 1024:.0f} MB in all")  # fmt: skip


def _fill(memory: Any, start: float) -> None:
    for hour in range(672):
        memory.times.append(int(start + hour * HOUR))
        memory.values.append(1000.0 + hour % 24 * 10 + hour * 7919 % 41)
        memory.residuals.append((hour * 7919 % 41 - 20) / 1000)
        memory.hours.append(hour % 168)
    memory.begun, memory.learned, memory.spread, memory.known = start, 672, 0.02, 672
    memory.renewal = memory.choice = 690


def _line(pipeline: int, when: float, streams: list[int]) -> bytes:
    hour = int(when // HOUR)
    counts = [
        {"stream": f"s{one}", "records": 1000 + (hour * 104729 + pipeline * 7919 + one * 31) % 97, "bytes": 1}
        for one in streams
    ]
    payload = {
        "cls_type": "run",
        "outcome": "succeeded",
        "duration": 60.0,
        "exit_code": 0,
        "command": f"tap-{pipeline}",
        "streams": counts,
    }
    context = {"application": f"tap-{pipeline}", "run_id": f"r{when}"}
    moment = datetime.fromtimestamp(when, timezone.utc)
    return encode(Event.new("tap.run", payload, context=context, timestamp=moment))


def backtest(pipelines: int, streams: int, days: int) -> None:
    """Print the seconds of a backtest over hourly runs."""
    monitors = [_monitor(name="rows", volume={"seasonality": "hour_of_day"})]
    start = FIRST.timestamp()
    end = start + days * DAY
    lines = [
        _line(number, start + hour * HOUR, list(range(streams)))
        for hour in range(days * 24)
        for number in range(pipelines)
    ]
    values = len(lines) * streams
    print(f"backtest: {pipelines * streams:,} series, {days} days by hour, {values:,} values")
    began, used = time.perf_counter(), time.process_time()
    run_backtest(monitors, map(decode, lines), start, end)
    took, used = time.perf_counter() - began, time.process_time() - used
    print(f"{took:6.1f} s, {used:6.1f} s of a core, {used / values * 1e6:.1f} µs of a core by value")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="do a little of the work")
    parser.add_argument("--seed", type=int, default=31, help="first of the seeds")
    parser.add_argument("--seeds", type=int, default=5, help="number of seeds of a generator")
    parser.add_argument("--generator", type=Path, help="generator of another author, or a file of its lines")
    parser.add_argument("--verbose", action="store_true", help="list false alarms and what was missed")
    given = parser.parse_args()
    if given.generator is not None:
        report(given.generator, [given.seed + number for number in range(given.seeds)], {}, verbose=given.verbose)
        return
    print(machine("balog"))
    seeds = [given.seed + number for number in range(1 if given.quick else 5)]
    found = accuracy(seeds, SHAPES[3:] if given.quick else SHAPES, 120 if given.quick else 364)
    sums = {name: one.precision + one.recall for name, one in found.items()}
    peers = max(total for name, total in sums.items() if name != "balog")
    print(f"ratio: {sums['balog'] / peers:.2f} × the precision and recall of the best other way")
    sys.stdout.flush()
    cost(200 if given.quick else 10_000, 500 if given.quick else 20_000)
    backtest(2, 2, 2) if given.quick else backtest(100, 10, 90)


if __name__ == "__main__":
    main()
