"""What the tests of catalogs do, in a process and a Spark of their own: batches into a place, and what is there then.

Usage: catalog_steps.py PLACE OTHER, which ``balog load`` is to load into; files go to the working folder. Prints a line
of JSON.
"""

import io
import json
import os
import random
import sys
from collections import Counter
from contextlib import redirect_stdout, suppress
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import types as t

from balog.analytics import register
from balog.analytics.sessions import start
from balog.analytics.tables import open_store
from balog.analytics.tables.catalogs.location import session_settings
from balog.analytics.tables.store import LoadedSource, StagedFile, TableBatch, TablePart
from balog.analytics.tables.table_schema import needs_widening
from balog.cli.load import command as load
from balog.cli.query import command as query
from balog.cli.report import command as report
from benchmarks.generate import run as generate

TYPES = {
    "string": t.StringType(),
    "timestamp": t.TimestampType(),
    "int": t.IntegerType(),
    "bigint": t.LongType(),
    "float": t.FloatType(),
    "double": t.DoubleType(),
    "huge": t.DecimalType(38, 0),
}
ARROW = {
    "string": pa.string(),
    "timestamp": pa.timestamp("us", "UTC"),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "huge": pa.decimal128(38, 0),
}
EVENTS = {"id": "string", "timestamp": "timestamp"}
FIRST = {**EVENTS, "a": "int", "s": {"x": "int", "l": [{"y": "float"}]}}
SECOND = {
    **EVENTS,
    "a": "bigint",
    "s": {"x": "bigint", "l": [{"y": "double", "w": "string"}], "z": "string"},
    "größe_2": "huge",
}


def spark_type(kind: Any) -> t.DataType:
    if isinstance(kind, dict):
        # Where a column's name is not the field's, its metadata tells: that has to survive.
        marks = {name: {"field": "Größe"} if name.startswith("größe") else {} for name in kind}
        return t.StructType([t.StructField(name, spark_type(inner), True, marks[name]) for name, inner in kind.items()])
    return t.ArrayType(spark_type(kind[0])) if isinstance(kind, list) else TYPES[kind]


def arrow_type(kind: Any) -> Any:
    if isinstance(kind, dict):
        return pa.struct([(name, arrow_type(inner)) for name, inner in kind.items()])
    return pa.list_(arrow_type(kind[0])) if isinstance(kind, list) else ARROW[kind]


def part(folder: str, table: str, columns: dict[str, Any], rows: list[dict[str, Any]]) -> TablePart:
    """Stage rows as the loader does, a file for each day."""
    files = []
    for day in sorted({row["timestamp"].date() for row in rows}):
        mine = [row for row in rows if row["timestamp"].date() == day]
        path = Path(folder, table, f"date={day}", f"part-{os.urandom(4).hex()}.parquet")
        path.parent.mkdir(parents=True)
        arrow = pa.schema([(name, arrow_type(kind)) for name, kind in columns.items()])
        pq.write_table(pa.Table.from_pylist(mine, arrow), path)
        times = [row["timestamp"] for row in mine]
        files.append(StagedFile(str(path), day, len(mine), path.stat().st_size, min(times), max(times)))
    schema = spark_type(columns)
    assert isinstance(schema, t.StructType)
    return TablePart(schema, files)


def row(number: int, days: int = 0, **fields: Any) -> dict[str, Any]:
    at = datetime(2026, 11, 20, 7, 46, 12, number, timezone.utc) + timedelta(days=days)
    return {"id": f"LG{number}", "timestamp": at, **fields}


def rows_of(store: Any, table: str) -> list[Any]:
    rows = [json.loads(text) for text in store.frame(table).toJSON().collect()]
    return sorted(rows, key=lambda one: str(one["id"]))


class Killed(BaseException):
    """A SIGKILL: nothing on the way up takes it."""


def told(command: Any, *words: str) -> str:
    """Run a command as its user does; it leaves the session to the next one, which saves a start of Spark."""
    with redirect_stdout(io.StringIO()) as out, mock.patch.object(SparkSession, "stop"):
        command.main(list(words), standalone_mode=False)
    return out.getvalue()


def loads(place: str, folder: Path) -> dict[str, Any]:
    """Load a dump into a place, and again; report it and query it."""
    lines = [line for seed in (6, 16, 24, 42) for line in generate(random.Random(seed), 40)]  # errors, a failed run
    (folder / "dumps").mkdir()
    (folder / "dumps" / "a.jsonl").write_bytes(b"".join(lines) + b"{ broken\n")
    kinds = Counter(json.loads(line)["payload"]["cls_type"] for line in lines)
    words = str(folder / "dumps"), "--tables", place
    question = "SELECT cls_type, count(*) AS n FROM events GROUP BY ALL ORDER BY ALL"
    return {
        "kinds": sorted(kinds.items()),
        "first": told(load, *words).splitlines(),
        "again": told(load, *words).splitlines(),
        "report": json.loads(told(report, place, "--json", "--no-html")),
        "answer": told(query, question, "--tables", place, "--format", "csv").splitlines(),
    }


def main(place: str, loaded: str) -> dict[str, Any]:
    # Many small questions: compiling each to Java costs more than its answer.
    interpreted = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    settings = {**session_settings(place), **interpreted, "spark.sql.shuffle.partitions": "2"}
    spark = start("catalogs", settings, "local[2]")
    store = open_store(spark, place)
    said: dict[str, Any] = {"empty": [store.names(), store.schema("thing")]}

    def batch(name: str, columns: dict[str, Any], *rows: dict[str, Any], sources: Any = None) -> TableBatch:
        folder = store.staging(name)
        events = [{"id": one["id"], "timestamp": one["timestamp"]} for one in rows]
        parts = {"events": part(folder, "events", EVENTS, events), "thing": part(folder, "thing", columns, list(rows))}
        return TableBatch(name, parts, sources or {})

    first = [row(1, a=1, s={"x": 1, "l": [{"y": 1.5}]}), row(2, 1, a=2, s=None)]
    with store.writing():
        told = batch("b1", FIRST, *first, sources={"a.jsonl": LoadedSource(5, 1.0)})
        store.commit(told)
        store.commit(told)
        second = {"x": 2**40, "l": [{"y": 2.5, "w": "new"}], "z": "it's"}
        store.commit(batch("b2", SECOND, row(3, a=2**40, s=second, größe_2=2**70)))
    said["grown"] = rows_of(store, "thing")
    schema = store.schema("thing")
    said["widens"] = needs_widening(schema, spark_type(SECOND))
    said["field"] = schema["größe_2"].metadata
    said["columns"] = store.frame("thing").columns

    with store.writing():
        third = batch("b3", SECOND, row(4, a=4), row(5, 1, a=5))
        register_one, killed = type(store)._register_one, iter([False, True])  # type: ignore[attr-defined]

        def once(self: Any, name: str) -> None:
            if next(killed):
                raise Killed
            register_one(self, name)

        with mock.patch.object(type(store), "_register_one", once), suppress(Killed):
            store.commit(third)
        assert next(killed, None) is None, "nobody was killed"
    store = open_store(spark, place)
    with store.writing():
        pass
    said["after"] = [[one["id"] for one in rows_of(store, table)] for table in ("events", "thing")]
    said["loaded"] = list(store.loaded().sources)
    since = datetime(2026, 11, 21, tzinfo=timezone.utc)
    said["since"] = sorted(one.id for one in store.frame("thing", since).collect())

    with store.writing():
        said["dry"] = store.expire(date(2026, 11, 21), dry_run=True)
        store.expire(date(2026, 11, 21))
        said["expired"] = [one["id"] for one in rows_of(store, "thing")]
        store.compact()
        said["compacted"] = [one["id"] for one in rows_of(store, "thing")]
    said["hive"] = {
        "tables": [one.tableName for one in spark.sql("SHOW TABLES IN balog").sort("tableName").collect()],
        "partitions": [one.partition for one in spark.sql("SHOW PARTITIONS balog.thing").collect()],
        "rows": spark.sql("SELECT id, a FROM balog.thing ORDER BY id").toJSON().collect(),
    }
    register(spark)
    said["loads"] = loads(loaded, Path.cwd())
    spark.stop()
    return said


if __name__ == "__main__":
    print("SAID " + json.dumps(main(*sys.argv[1:])))
