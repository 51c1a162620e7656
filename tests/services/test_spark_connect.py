"""``balog load``, ``report`` and ``query`` through one Spark Connect server, against a recount in plain Python."""

import json
import random
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("grpc", reason="grpcio is not installed")

from tests.oracles import report_recount as recount
from tests.oracles.hostile_events import HostileArchive
from tests.programs import run_program
from tests.services.servers.process import running
from tests.services.servers.spark_connect import SparkConnectServer, without_java

BALOG = "from balog.cli import main; main(prog_name='balog')"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkConnectServer]:
    with running(SparkConnectServer(tmp_path_factory.mktemp("connect"))) as server:
        yield server


def balog(*words: Any, **variables: str) -> str:
    """Run a command where no Java can be started, and return its stdout."""
    environment = {**without_java(), **variables}
    return run_program(sys.executable, "-c", BALOG, *map(str, words), env=environment).stdout


def rows(tables: Path, name: str) -> list[dict[str, Any]]:
    """Return the rows of a table that is in its log, without Spark."""
    import pyarrow.parquet as pq

    from balog.analytics.tables.local import StoredTables

    files = StoredTables(str(tables)).files(name)
    return [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]


def test_loads_reports_and_queries_share_one_server(server: SparkConnectServer, tmp_path: Path) -> None:
    """Two loads (the second of old and new files), a report and a query are what plain Python counts."""
    source, tables = tmp_path / "source", tmp_path / "tables"
    source.mkdir()
    HostileArchive(random.Random(3)).write(source, edited=False)
    (tmp_path / "later").mkdir()
    late = (source / "2.jsonl").rename(tmp_path / "later" / "2.jsonl")
    balog("load", source, "--tables", tables, "--remote", server.url)
    expected = recount.read(source)
    assert Counter(row["id"] for row in rows(tables, "events")) == Counter(event.id for event in expected.events)
    late.rename(source / "2.jsonl")
    balog("load", source, "--tables", tables, SPARK_REMOTE=server.url)
    expected = recount.read(source)
    found = rows(tables, "events")
    assert Counter(row["id"] for row in found) == Counter(event.id for event in expected.events)
    assert {(row["id"], row["timestamp"], row["channel"], row["level"]) for row in found} == {
        (event.id, event.at, event.channel, event.level) for event in expected.events
    }
    assert len(rows(tables, "quarantine")) == expected.bad
    kinds = Counter(event.kind for event in expected.events)
    assert {name: len(rows(tables, name)) for name in ("log", "metric", "metrics", "run")} == {
        name: kinds[name] for name in ("log", "metric", "metrics", "run")
    }

    report = json.loads(balog("report", tables, "--json", "--no-html", "--engine", "spark", "--remote", server.url))
    assert (report["events"], report["source"]) == (len(expected.events), "rollups")
    records = {name: stats[1] for name, stats in recount.stream_stats(expected.events, expected.events).items()}
    assert {row["stream"]: row["records"] for row in report["streams"]} == records
    sql = "SELECT level, count(*) AS n FROM events GROUP BY level"
    answer = balog("query", sql, "--tables", tables, "--format", "jsonl", "--remote", server.url)
    assert {row["level"]: row["n"] for row in map(json.loads, answer.splitlines())} == Counter(
        event.level for event in expected.events
    )
    assert server.is_up()


def test_an_error_of_a_row_on_the_server_is_one_line(server: SparkConnectServer, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("broken\n")
    sql = "SELECT CAST(concat('x', quarantine.offset) AS INT) FROM balog.`a`"
    words = [
        "query",
        sql.replace("`a`", f"`{tmp_path}`"),
        "--source",
        tmp_path,
        "--format",
        "csv",
        "--remote",
        server.url,
    ]
    done = run_program(sys.executable, "-c", BALOG, *map(str, words), env=without_java(), code=1)
    assert done.stderr.splitlines()[:-1] == ["balog query: Connecting to the Spark Connect server"]
    assert (
        '\'x0\' of the type "STRING" cannot be cast to "INT" because it is malformed, line 1, column 8' in done.stderr
    )
