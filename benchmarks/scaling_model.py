"""What a load and a report need on a cluster of another size: laws fitted to small runs, by least squares.

Each law is a sum of terms that can't be negative:

====================  ==========================================================================
processor seconds     start + a commit × commits + a task × tasks + a GB × GB
seconds by the clock  start + a commit × commits + (a task × tasks + a GB × GB) / cores
tasks                 commits × (some + a core's × workers) + a GB's × GB
shuffled MB           a commit's × commits + a task's × tasks + a GB's × GB
files of a table      days × commits × (some + a worker's × workers) + a GB's × GB
driver's MB           start + a task's × tasks of a commit
====================  ==========================================================================

A report counts as one commit. Errors are relative, so that a short run counts as much as a long one.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy

__all__ = ["Law", "Model", "Place", "Prediction", "Run", "fit", "medians_of"]


class Place(NamedTuple):
    """Where a job runs, and over what.

    Attributes:
        job: ``load`` or ``report``.
        workers: cores of the cluster that tasks are planned for.
        cores: those that can work at the same time.
        gigabytes: of JSON lines.
        commits: of a load; 1 for a report.
        days: days that the events of one commit are of.
    """

    job: str
    workers: int
    cores: int
    gigabytes: float
    commits: int
    days: int


class Prediction(NamedTuple):
    """What a job needs. ``files`` is by kind of table."""

    processor: float
    seconds: float
    tasks: float
    shuffle: float
    driver: float
    files: Mapping[str, float]


class Run(NamedTuple):
    """What a job needed."""

    place: Place
    found: Prediction


class Law(NamedTuple):
    """A sum of named terms, each a factor times a coefficient that is not negative."""

    terms: Mapping[str, float]

    def at(self, factors: Mapping[str, float]) -> float:
        """Return the sum for some factors."""
        return sum(coefficient * factors[name] for name, coefficient in self.terms.items())


def fit(points: Sequence[Mapping[str, float]], values: Sequence[float]) -> Law:
    """Fit a law to values by least squares of relative errors; a term that would be negative is left out.

    Args:
        points: the factors of each value; all have the same names.
        values: not negative.
    """
    names = list(points[0])
    most = max(values, default=0.0)
    weights = numpy.array([1 / max(value, most * 1e-6, 1e-12) for value in values])
    factors = numpy.array([[point[name] for name in names] for point in points], dtype=float)
    scales = numpy.maximum(numpy.abs(factors).max(axis=0), 1e-12)  # so that terms of all sizes count alike
    rows, wanted = factors / scales * weights[:, None], numpy.array(values, dtype=float) * weights
    kept = [number for number in range(len(names)) if factors[:, number].any()]
    found = numpy.zeros(len(names))
    while kept:
        solved = numpy.linalg.lstsq(rows[:, kept], wanted, rcond=1e-9)[0]
        if solved.min() >= -1e-12:
            found[kept] = numpy.maximum(solved, 0.0)
            break
        del kept[int(numpy.argmin(solved))]
    return Law({name: float(value / scale) for name, value, scale in zip(names, found, scales)})


def medians_of(runs: Iterable[Run]) -> list[Run]:
    """Return one run for each place, with the medians of all that it needed."""
    places: dict[Place, list[Prediction]] = defaultdict(list)
    for run in runs:
        places[run.place].append(run.found)
    made = []
    for place, found in places.items():
        processor, seconds, tasks, shuffle, driver = (statistics.median(column) for column in list(zip(*found))[:5])
        kinds = sorted({kind for one in found for kind in one.files})
        files = {kind: statistics.median(one.files.get(kind, 0) for one in found) for kind in kinds}
        made.append(Run(place, Prediction(processor, seconds, tasks, shuffle, driver, files)))
    return made


class Model:
    """The laws of each job, fitted to runs."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.laws: dict[tuple[str, str], Law] = {}
        for job in sorted({run.place.job for run in runs}):
            mine = [run for run in runs if run.place.job == job]

            def law(name: str, points: Sequence[Mapping[str, float]], values: Sequence[float], job: str = job) -> None:
                self.laws[job, name] = fit(points, values)

            tasks = [run.found.tasks for run in mine]
            law("tasks", [_planned(run.place) for run in mine], tasks)
            work = [_work(run.place, count) for run, count in zip(mine, tasks)]
            law("processor", work, [run.found.processor for run in mine])
            shared = [_work(run.place, count, run.place.cores) for run, count in zip(mine, tasks)]
            law("seconds", shared, [run.found.seconds for run in mine])
            shuffled = [_shuffled(run.place, count) for run, count in zip(mine, tasks)]
            law("shuffle", shuffled, [run.found.shuffle for run in mine])
            law(
                "driver",
                [_driven(run.place, count) for run, count in zip(mine, tasks)],
                [run.found.driver for run in mine],
            )
            for kind in sorted({kind for run in mine for kind in run.found.files}):
                law(
                    f"files of {kind}",
                    [_written(run.place) for run in mine],
                    [run.found.files.get(kind, 0) for run in mine],
                )

    def predict(self, place: Place) -> Prediction:
        """Return what a job needs at another place."""
        law = {name: found for (job, name), found in self.laws.items() if job == place.job}
        tasks = law["tasks"].at(_planned(place))
        work = _work(place, tasks)
        files = {name[9:]: one.at(_written(place)) for name, one in law.items() if name.startswith("files of ")}
        return Prediction(
            law["processor"].at(work),
            law["seconds"].at(_work(place, tasks, place.cores)),
            tasks,
            law["shuffle"].at(_shuffled(place, tasks)),
            law["driver"].at(_driven(place, tasks)),
            files,
        )

    def unshared(self, place: Place) -> float:
        """Return the seconds that a job needs if nothing else runs there, from processor time.

        Tasks share the cores; what starts a job and what commits it is done by one of them.
        """
        work = _work(place, self.laws[place.job, "tasks"].at(_planned(place)), place.cores)
        return self.laws[place.job, "processor"].at(work)


def error(predicted: float, measured: float) -> float:
    """Return how far a prediction is off, as a part of what was measured."""
    return predicted / measured - 1 if measured else (0.0 if not predicted else math.inf)


def _planned(place: Place) -> dict[str, float]:
    return {"commits": place.commits, "workers": place.commits * place.workers, "GB": place.gigabytes}


def _work(place: Place, tasks: float, cores: int = 1) -> dict[str, float]:
    shared = {"tasks": tasks / cores, "GB": place.gigabytes / cores}
    return {"start": 1.0, "commits": place.commits - 1.0, **shared}


def _shuffled(place: Place, tasks: float) -> dict[str, float]:
    return {"commits": place.commits, "tasks": tasks, "GB": place.gigabytes}


def _driven(place: Place, tasks: float) -> dict[str, float]:
    return {"start": 1.0, "tasks": tasks / place.commits}


def _written(place: Place) -> dict[str, float]:
    each = float(place.days * place.commits)
    return {"days": each, "workers": each * place.workers, "GB": place.gigabytes}
