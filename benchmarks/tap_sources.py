"""Time taps of databases and files on balog.tap against loops by hand that read the same rows.

    python -m benchmarks.tap_sources

The database is SQLite, the file a CSV of the same rows; what is written goes to /dev/null. Seconds are of one core in
user and system time. First the rows of the tap and of the loops are compared, or nothing is measured.
"""

from __future__ import annotations

import csv
import json
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import sqlalchemy

from balog.tap import Tap
from balog.tap.bookmarks import State
from balog.tap.catalog import choose
from balog.tap.endpoints import FileStream
from balog.tap.records import Output
from balog.tap.schema import schema_of
from balog.tap.schema.types import obj, string
from balog.tap.sql import Database, TableStream
from balog.tap.streams import Stream
from balog.tap.syncing import Sync
from benchmarks.measure import machine

NAMES = ["id", "name", "email", "city", "total", "count", "note", "flag", "created", "changed"]


def row_of(number: int) -> list[Any]:
    name = f"name {number}"
    return [
        number,
        name,
        f"{name}@example.org",
        "Rome",
        number / 4,
        number % 7,
        "x" * 20,
        number % 2,
        f"d{number}",
        "z",
    ]


def make(folder: Path, rows: int) -> tuple[str, Path]:
    database = folder / "rows.db"
    with sqlite3.connect(database) as connection:
        kinds = ["INTEGER PRIMARY KEY", "TEXT", "TEXT", "TEXT", "REAL", "INTEGER", "TEXT", "INTEGER", "TEXT", "TEXT"]
        connection.execute(f"CREATE TABLE rows ({', '.join(f'{n} {k}' for n, k in zip(NAMES, kinds))})")
        connection.executemany(f"INSERT INTO rows VALUES ({', '.join('?' * 10)})", map(row_of, range(rows)))
    files = folder / "files"
    files.mkdir()
    with (files / "rows.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(NAMES)
        writer.writerows(map(row_of, range(rows)))
    return f"sqlite:///{database}", files


def sync(stream: Stream, client: Any, sink: Any) -> None:
    tap = Tap("tap-bench")
    tap.client(lambda config: client)
    tap.add(stream)
    catalog, _ = choose(list(tap.link().values()), None, lambda each: schema_of(each.schema, lambda: client, each.name))
    was = os.dup(1)
    os.dup2(sink.fileno(), 1)
    try:
        assert Sync(tap, {}, catalog, State(), Output()).run() == 0
    finally:
        os.dup2(was, 1)
        os.close(was)


def core(function: Callable[[Any], None]) -> float:
    with open(os.devnull, "wb") as sink:
        start = time.process_time()
        function(sink)
        return time.process_time() - start


def ways(url: str, files: Path) -> dict[str, dict[str, Callable[[Any], None]]]:
    engine = sqlalchemy.create_engine(url)
    database = Database(url)
    path = files / "rows.csv"
    schema = obj({name: string() for name in NAMES})

    def sql_tap(sink: Any) -> None:
        sync(next(iter(TableStream.find(database))), database, sink)

    def sql_read(sink: Any) -> None:
        with engine.connect() as connection:
            for row in connection.execute(sqlalchemy.text("SELECT * FROM rows ORDER BY id")):
                dict(row._mapping)

    def sql_write(sink: Any) -> None:
        with engine.connect() as connection:
            for row in connection.execute(sqlalchemy.text("SELECT * FROM rows ORDER BY id")):
                message = {"type": "RECORD", "stream": "rows", "record": dict(row._mapping)}
                sink.write(json.dumps(message).encode() + b"\n")

    def file_tap(sink: Any) -> None:
        sync(FileStream("rows", folder=str(files), schema=schema), None, sink)

    def file_read(sink: Any) -> None:
        with path.open(newline="") as file:
            for _ in csv.DictReader(file):
                pass

    def file_write(sink: Any) -> None:
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                sink.write(json.dumps({"type": "RECORD", "stream": "rows", "record": row}).encode() + b"\n")

    def file_pandas(sink: Any) -> None:
        import pandas

        for record in pandas.read_csv(path, dtype=str, keep_default_na=False).to_dict("records"):
            sink.write(json.dumps({"type": "RECORD", "stream": "rows", "record": record}).encode() + b"\n")

    return {
        "SQL": {"balog.tap.sql": sql_tap, "SQLAlchemy, rows as dicts": sql_read, "SQLAlchemy, json.dumps": sql_write},
        "CSV": {
            "balog.tap.endpoints": file_tap,
            "csv.DictReader": file_read,
            "csv.DictReader, json.dumps": file_write,
            "pandas, json.dumps": file_pandas,
        },
    }


def check(kinds: dict[str, dict[str, Callable[[Any], None]]]) -> None:
    for functions in kinds.values():
        found = []
        for name, function in functions.items():
            if "balog" in name or "json" in name:
                with tempfile.TemporaryFile() as sink:
                    function(sink)
                    sink.seek(0)
                    messages = [json.loads(line) for line in sink]
                records = [each["record"] for each in messages if each["type"] == "RECORD"]
                found.append([{key: record[key] for key in NAMES} for record in records])
        if any(records != found[0] for records in found):
            raise click.ClickException("the ways do not write the same rows")


@click.command()
@click.option("--rounds", default=5, show_default=True)
@click.option("--rows", default=100_000, show_default=True)
def main(rounds: int, rows: int) -> None:
    """Print seconds of a core, rows per second, and the tap's rows per second divided by each loop's."""
    print(machine("balog", "sqlalchemy", "pandas"))
    with tempfile.TemporaryDirectory() as folder:
        kinds = ways(*make(Path(folder), rows))
        check(kinds)
        for kind, functions in kinds.items():
            best = {name: min(core(function) for _ in range(rounds)) for name, function in functions.items()}
            ours = next(iter(best.values()))
            print(f"\n{kind}: {rows:,} rows of ten columns{'':12} rows/s   tap / this")
            for name, seconds in best.items():
                print(f"{name:32} {seconds:8.3f} s {rows / seconds:12,.0f}   {seconds / ours:8.2f}")


if __name__ == "__main__":
    main()
