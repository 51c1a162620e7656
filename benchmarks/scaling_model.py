"""What a load and a report need on a cluster of another size: laws fitted to small runs, by least squares.

Each law is a sum of terms that can't be negative:

====================  ==========================================================================
processor seconds     start + a commit's × further commits + work
seconds by the clock  start + a commit's × further commits + work / cores
work                  a worker's × workers + a reader's × readers + a GB's × GB
shuffled MB           a commit's × further commits + a reader's × readers + a GB's × GB
files of a table      a planned file's × planned files
tasks                 a commit's × commits + a reader's × readers
driver's MB           always the same
====================  ==========================================================================

Readers are tasks that read events, and writers those that write the tables of payload types; balog's own planner says
how many of both a commit has. A report counts as one commit. Errors are relative, so that a short run counts as much as
a long one. The driver's memory is that of Java's heap, which is filled before garbage is collected, whatever the input.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy

__all__ = ["Law", "Model", "Place", "Prediction", "Run", "fit", "medians_of"]

_FILES_OF = "files of "
_LESSER = 0.01
_MOST_FILES = 4  # of one day that a load leaves as its readers wrote them


class Place(NamedTuple):
    """Where a job runs, and over what.

    Attributes:
        job: ``load`` or ``report``.
        workers: cores of the cluster that tasks are planned for.
        cores: those that can work at the same time.
        readers, writers: tasks of one commit that read events, and that write the tables of payload types.
        gigabytes: of JSON lines.
        commits: of a load; 1 for a report.
        days: days that the events of one commit are of.
    """

    job: str
    workers: int
    cores: int
    readers: int
    writers: int
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

    If the points don't tell terms apart, the first of them counts.

    Args:
        points: the factors of each value; all have the same names.
        values: not negative.
    """
    names = list(points[0])
    most = max(values, default=0.0)
    weights = numpy.array([1 / max(value, most * 1e-6, 1e-12) for value in values])
    factors = numpy.array([[point[name] for name in names] for point in points], dtype=float)
    scales = numpy.maximum(numpy.abs(factors).max(axis=0), 1e-12)  # so that terms of all sizes count alike
    scales[1:] /= _LESSER
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
            needs = [_values(run.found) for run in mine]
            factors = [_factors(run.place, run.found.files) for run in mine]
            for name in needs[0]:
                points, values = [each[name] for each in factors], [each[name] for each in needs]
                self.laws[job, name] = fit(points, values)

    def predict(self, place: Place) -> Prediction:
        """Return what a job needs at another place."""
        law = {name: found for (job, name), found in self.laws.items() if job == place.job}
        kinds = [name.removeprefix(_FILES_OF) for name in law if name.startswith(_FILES_OF)]
        files = {kind: law[_FILES_OF + kind].at(_written(place, kind)) for kind in kinds}
        made = {name: law[name].at(factors) for name, factors in _factors(place, files).items()}
        return Prediction(made["processor"], made["seconds"], made["tasks"], made["shuffle"], made["driver"], files)

    def unshared(self, place: Place) -> float:
        """Return the seconds that a job needs if nothing else runs there, from processor time.

        Tasks share the cores; what starts a job and what commits it is done by one of them.
        """
        return self.laws[place.job, "processor"].at(_work(place, place.cores))


def error(predicted: float, measured: float) -> float:
    """Return how far a prediction is off, as a part of what was measured."""
    return predicted / measured - 1 if measured else (0.0 if not predicted else math.inf)


def _values(found: Prediction) -> dict[str, float]:
    values = {name: float(getattr(found, name)) for name in ("processor", "seconds", "tasks", "shuffle", "driver")}
    return values | {_FILES_OF + kind: count for kind, count in found.files.items()}


def _factors(place: Place, files: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Return the factors of each law at a place; ``files`` has the kinds of tables."""
    return {
        "processor": _work(place),
        "seconds": _work(place, place.cores),
        "tasks": _spread(place),
        "shuffle": _shuffled(place),
        "driver": {"start": 1.0},
        **{_FILES_OF + kind: _written(place, kind) for kind in files},
    }


def _work(place: Place, cores: int = 1) -> dict[str, float]:
    readers = place.commits * place.readers
    shared = {"workers": place.workers / cores, "readers": readers / cores, "GB": place.gigabytes / cores}
    return {"start": 1.0, "commits": place.commits - 1.0, **shared}


def _shuffled(place: Place) -> dict[str, float]:
    """Return the factors of what a job shuffles; a further commit looks for duplicates in earlier ones."""
    return {"GB": place.gigabytes, "commits": place.commits - 1.0, "readers": float(place.commits * place.readers)}


def _spread(place: Place) -> dict[str, float]:
    """Return the factors of a job's tasks."""
    return {"commits": float(place.commits), "readers": float(place.commits * place.readers)}


def _written(place: Place, kind: str) -> dict[str, float]:
    """Return the files of one table: each writer's days, or for events those of each reader, if they are few."""
    if kind == "events" and place.readers <= _MOST_FILES:
        return {"planned files": float(place.commits * place.days * place.readers)}
    return {"planned files": float(place.commits * (place.days + place.writers - 1))}
