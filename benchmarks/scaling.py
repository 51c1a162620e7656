"""How loads and reports grow: one, four and sixteen times the input on clusters of one, two and four workers.

    python -m benchmarks.scaling --base 20 --folder /var/tmp/balog-bench

The clusters are Spark's own, standalone: a master, and workers of one core, each a process on loopback. A model is
fitted to the runs of the smaller inputs; it predicts those of the largest, and what ten terabytes a day would need.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path

import click
import msgspec

from balog.analytics.reading.tasks import SourceFile, plan
from balog.analytics.tables.derivation import share_files
from balog.analytics.tables.store import StagedFile
from benchmarks.generate import events
from benchmarks.measure import machine
from benchmarks.scaling_cluster import standalone
from benchmarks.scaling_job import Measured, Task
from benchmarks.scaling_model import Model, Place, Prediction, Run, error, medians_of

_WORKERS, _FACTORS = (1, 2, 4), (1, 4, 16)
_FILES = 8
_LONGEST = 2_000  # events of a run, so that sizes are near to multiples
_SPLIT = 4  # times the input, which the smallest cluster also loads in several commits
_DAY = 10_000  # GB
_EVENT = 470  # bytes, as the generated ones have
_NODES, _NODE_CORES = 50, 16
_COMMIT_GB = 128 * 1024**2 / 1e9  # for each core, as a load does it by default
_SMALL_COMMIT_GB = 2 * 1024**3 / 1e9  # what a load does on a few cores


def measure(
    workers: int, archives: Sequence[Path], batches: Sequence[tuple[int, ...]], rounds: int, *, warm: bool
) -> list[Measured]:
    """Run the jobs over the archives, the smallest first, on a cluster of so many workers.

    Raises:
        ClickException: the driver failed; with the end of what it printed.
    """
    with tempfile.TemporaryDirectory(prefix="balog-scaling-") as scratch:
        with standalone(workers, Path(scratch, "cluster")) as master:
            paths = tuple(map(str, archives))
            task = Task(master, workers, paths, tuple(batches), str(Path(scratch, "driver")), rounds, warm)
            done = subprocess.run(
                [sys.executable, "-m", "benchmarks.scaling_job", msgspec.json.encode(task)],
                env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
                capture_output=True,
                text=True,
                check=False,
            )
    if done.returncode:
        raise click.ClickException(f"{workers} workers: {' / '.join(done.stderr.splitlines()[-3:]):.600}")
    return [msgspec.json.decode(line, type=Measured) for line in done.stdout.splitlines()]


def run_of(one: Measured) -> Run:
    """Return a measurement as the model takes it."""
    cores = min(one.workers, os.cpu_count() or 1)
    commits = max(1, one.batches)
    readers = readers_of(one.bytes // commits, max(1, _FILES // commits), one.workers)
    writers = writers_of(one.events / commits)
    place = Place(one.job, one.workers, cores, readers, writers, one.bytes / 1e9, commits, max(1, one.days))
    shuffle = one.shuffle / 1e6
    return Run(place, Prediction(one.processor, one.seconds, one.tasks, shuffle, one.driver, one.files))


def readers_of(size: int, files: int, cores: int) -> int:
    """Return how many tasks balog plans to read files of so many bytes together; Spark counts two cores at least."""
    return len(plan([SourceFile(f"{number}.jsonl", size // files) for number in range(files)], max(2, cores)))


def writers_of(events: float) -> int:
    """Return how many tasks balog plans to write the tables of payload types of so many events."""
    return len(share_files([StagedFile("", date.min, 50_000, 0)] * max(1, round(events / 50_000))))


def print_runs(runs: Iterable[Run], others: float) -> None:
    """Print a line for each place; ``others`` is how many cores were busy with something else."""
    heads = ("commits", "clock", "processor", "tasks", "shuffle", "driver")
    click.echo(
        f"\n{'job':7}workers{'input':>8}" + "".join(f"{head:>10}" for head in heads) + "  events, types, rollups"
    )
    for place, found in runs:
        files = ", ".join(f"{found.files.get(kind, 0):.0f}" for kind in ("events", "types", "rollups"))
        commits = str(place.commits) if found.files else "-"
        click.echo(
            f"{place.job:7}{place.workers:7}{place.gigabytes * 1e3:5.0f} MB{commits:>10}{found.seconds:8.1f} s"
            f"{found.processor:8.1f} s{found.tasks:10.0f}{found.shuffle:7.1f} MB{found.driver:7.0f} MB"
            + (f"  files: {files}" if found.files else "")
        )
    click.echo(f"medians; other programs kept {others:.1f} of {os.cpu_count()} cores busy meanwhile")


def print_errors(model: Model, runs: Sequence[Run]) -> None:
    """Print what the model predicts for the largest input, and how far that is from what was measured."""
    click.echo("\nwhat the model, fitted to the smaller inputs, predicts for the largest one (and its error)")
    names = ("clock, s", "processor, s", "tasks", "shuffle, MB", "driver, MB", "files")
    click.echo(f"{'job':7}workers" + "".join(f"{name:>16}" for name in names))
    missed: dict[str, list[float]] = {name: [] for name in names}
    for place, found in runs:
        made = model.predict(place)
        cells = []
        for name, predicted, measured in zip(names, _needs(made), _needs(found)):
            if measured:
                missed[name].append(error(predicted, measured))
                cells.append(f"{predicted:,.1f} ({missed[name][-1]:+.0%})")
        click.echo(f"{place.job:7}{place.workers:7}" + "".join(f"{cell:>16}" for cell in cells))
    worst = ", ".join(f"{name.partition(',')[0]} {max(off, key=abs):+.0%}" for name, off in missed.items() if off)
    click.echo(f"largest errors (target 15 %): {worst}")


def _needs(found: Prediction) -> list[float]:
    return [found.seconds, found.processor, found.tasks, found.shuffle, found.driver, sum(found.files.values())]


def print_laws(model: Model) -> None:
    """Print the coefficients."""
    click.echo("\nThe laws (benchmarks/scaling_model.py), fitted to all inputs")
    for (job, name), law in model.laws.items():
        terms = [f"{value:.3g} × {factor}" for factor, value in law.terms.items() if value > 1e-9]
        click.echo(f"  {job:7}{name:18} {' + '.join(terms) or '0'}")


def print_day(model: Model) -> None:
    """Print what the model says for ten terabytes a day."""
    cores = _NODES * _NODE_CORES
    click.echo(
        f"\nAn estimate, not a measurement: 10 TB of JSON lines a day on {_NODES} nodes of {_NODE_CORES} cores. It\n"
        "assumes cores like these, disks and a network that keep up, a commit's events on one day, and laws that\n"
        f"hold {cores // _WORKERS[-1]} times beyond what was measured. Time is from processor time, on a quiet cluster."
    )
    places = []
    for job, size in (("load", cores * _COMMIT_GB), ("load", _SMALL_COMMIT_GB), ("report", _DAY)):
        readers = readers_of(int(size * 1e9), max(1, int(size / 0.128)), cores)
        writers = writers_of(size * 1e9 / _EVENT)
        places.append(Place(job, cores, cores, readers, writers, _DAY, round(_DAY / size), 1))
    for place in places:
        made = model.predict(place)
        what = f"load, {place.commits:,} commits" if place.job == "load" else "report from files"
        click.echo(
            f"  {what:20} {model.unshared(place) / 60:7,.1f} min, {made.processor / 3600:,.0f} core hours, "
            f"{made.tasks:,.0f} tasks, {made.shuffle / 1e3:,.1f} GB shuffled, driver {made.driver / 1e3:,.1f} GB"
        )
        files = ", ".join(f"{name} {count:,.0f}" for name, count in made.files.items() if count >= 0.5)
        if files:
            click.echo(f"  {'':20} files: {files}")


@click.command()
@click.option("--base", default=20, show_default=True, help="Millions of bytes of events of the 1 ×, about.")
@click.option("--rounds", default=1, show_default=True, help="Times that each job is done; medians are printed.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    default=Path("/tmp/balog-bench"),
    show_default=True,
    help="Where the events are kept.",
)
@click.option(
    "--raw", type=click.Path(path_type=Path), help="Add the measurements to this file; those of earlier runs count."
)
@click.option("--workers", "counts", type=int, multiple=True, default=_WORKERS, show_default=True, help="Of a cluster.")
@click.option("--quick", is_flag=True, help="A round of 1 and 4 MB on one worker: shows that it runs.")
def main(base: int, rounds: int, folder: Path, raw: Path | None, counts: tuple[int, ...], quick: bool) -> None:
    """Measure growth with the input and with the workers, and fit a model to it."""
    counts, factors = (counts, _FACTORS) if not quick else ((1,), _FACTORS[:2])
    base, rounds = (1, 1) if quick else (base, rounds)
    click.echo(
        f"{machine('balog', 'pyspark', 'duckdb')}\n"
        f"standalone clusters on loopback; 1 × is about {base} MB, {rounds} rounds\n"
        f"Four workers of one core on {os.cpu_count()} cores show what more tasks, files and shuffles cost,\n"
        "not how much sooner four cores are done."
    )
    archives = [
        events(folder / "scaling", base * factor * 1_000_000, _FILES, longest=_LONGEST)[0] for factor in factors
    ]
    lines = raw.read_bytes().splitlines() if raw is not None and raw.exists() else []
    measured = [msgspec.json.decode(line, type=Measured) for line in lines]
    commit = 3_000_000 if quick else base * 1_200_000
    for count in counts:
        batches = [(0, commit) if factor == _SPLIT and count == _WORKERS[0] else (0,) for factor in factors]
        found = measure(count, archives, batches, rounds, warm=not quick)
        measured += found
        if raw is not None:
            with raw.open("ab") as out:
                out.writelines(msgspec.json.encode(one) + b"\n" for one in found)
    show(measured)


def show(measured: Sequence[Measured]) -> None:
    """Print the runs, the model and the estimate.

    Raises:
        ClickException: loads and reports of the same archive saw different numbers of events.
    """
    for size in {one.bytes for one in measured}:
        found = sorted({one.events for one in measured if one.bytes == size})
        if len(found) != 1:
            raise click.ClickException(f"the jobs saw different numbers of events in {size:,} bytes: {found}")
    runs = medians_of(map(run_of, measured))
    busy = sum(one.others * one.seconds for one in measured) / sum(one.seconds for one in measured)
    print_runs(runs, busy)
    workers = max(one.worker for one in measured)
    click.echo(f"a worker's Python process had at most {workers:,.0f} MB")
    largest = max(run.place.gigabytes for run in runs)
    smaller = [run for run in runs if run.place.gigabytes < largest]
    print_errors(Model(smaller), [run for run in runs if run.place.gigabytes == largest])
    model = Model(runs)
    print_laws(model)
    print_day(model)


if __name__ == "__main__":
    main()
