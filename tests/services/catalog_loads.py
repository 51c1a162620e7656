"""What the tests of catalogs load: a small archive by ``balog load`` itself, and the same into plain Parquet tables."""

import gzip
import io
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from balog.analytics.rollups.frames import merge
from balog.analytics.tables import ROLLUPS, open_store, open_tables
from balog.cli.load import command as load
from balog.cli.query import command as query
from balog.cli.report import command as report
from benchmarks.generate import run as generate


class Killed(BaseException):
    """A SIGKILL: nothing on the way up takes it."""


@contextmanager
def killed_between_tables(kind: Any, step: str) -> Iterator[None]:
    """Be killed in a commit, after the step for its first table."""
    commit, whole = kind.commit, getattr(kind, step)
    done: list[Any] = []

    def once(self: Any, *given: Any) -> None:
        if done:
            raise Killed
        done.append(given)
        whole(self, *given)

    def committing(self: Any, batch: Any) -> None:
        with mock.patch.object(kind, step, once):
            commit(self, batch)

    with mock.patch.object(kind, "commit", committing):
        try:
            yield
        except Killed:
            return
    sys.exit("nobody was killed")


def said(command: Any, *words: str) -> str:
    """Run a command as its user does; it leaves the session to the next one, which saves a start of Spark."""
    with redirect_stdout(io.StringIO()) as out, mock.patch.object(SparkSession, "stop"):
        command.main(list(words), standalone_mode=False)
    return out.getvalue()


def loads(spark: SparkSession, place: str, kind: Any, step: str, folder: Path) -> dict[str, Any]:
    """Load into a place, again, and with growth, overlap and a kill; and all of it at once into Parquet tables."""
    dumps, clean = folder / "dumps", str(folder / "clean")
    dumps.mkdir()
    runs = [list(generate(random.Random(seed), 40)) for seed in (6, 16, 24, 42)]  # with errors and a failed run
    kinds = Counter(json.loads(line)["payload"]["cls_type"] for one in runs for line in one)
    told: dict[str, Any] = {"kinds": sorted(kinds.items())}

    def into(where: str) -> list[str]:
        return said(load, str(dumps), "--tables", where).splitlines()

    (dumps / "a.jsonl").write_bytes(b"".join(runs[0] + runs[1][:30]) + b"{ broken\n")
    told["first"], told["again"] = into(place), into(place)
    new = [line.replace(b'"message":', b'"tries":{"of":"source","count":3},"message":') for line in runs[2]]
    (dumps / "b.jsonl.gz").write_bytes(gzip.compress(b"".join(runs[1][20:] + new + runs[3] + new[30:])))
    with killed_between_tables(kind, step):
        into(place)
    told["rerun"] = into(place)
    into(clean)

    told["place"], told["clean"] = contents(spark, place), contents(spark, clean)
    told["report"] = json.loads(said(report, place, "--json", "--no-html"))
    question = "SELECT cls_type, count(*) AS n FROM events GROUP BY ALL ORDER BY ALL"
    told["answer"] = said(query, question, "--tables", place, "--format", "csv").splitlines()
    store = open_store(spark, place)
    told["rolled"] = [store.frame("rollup_events").count()]
    with store.writing():
        store.compact(["rollup_errors", "rollup_events", "rollup_metrics", "rollup_runs"])
    told["rolled"].append(store.frame("rollup_events").count())
    told["compacted"] = contents(spark, place, is_rolled=True)
    return told


def contents(spark: SparkSession, place: str, *, is_rolled: bool = False) -> dict[str, Any]:
    """Give the columns and rows of each table, or of rollups alone, in an order that says nothing; rollups merged."""
    tables = open_tables(spark, place)
    merged = merge(tables.rollups())
    frames = {} if is_rolled else {name: tables.frame(name) for name in tables.names()}
    frames |= {table: getattr(merged, name) for name, table in ROLLUPS.items()}
    return {name: [sorted(frame.dtypes), sorted(plain(frame).toJSON().collect())] for name, frame in frames.items()}


def plain(frame: DataFrame) -> DataFrame:
    """Give rows that the order and the time of loads say nothing in."""
    if "loaded" in frame.columns:
        frame = frame.drop("loaded", "date")
    if "sketch" in frame.columns:
        frame = frame.withColumn("sketch", f.expr("kll_sketch_get_quantile_double(sketch, 0.5)"))
        frame = frame.withColumn("sum", f.round("sum", 9))
    return frame.select(*(f.col(f"`{name}`") for name in sorted(frame.columns)))
