"""One frame asked many questions in a row, compared with DuckDB over rows that plain Python took out of the lines."""

import json
import random
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from tests.oracles.effort import seeds

pytestmark = pytest.mark.spark

NOON = datetime(2026, 11, 20, 12, tzinfo=timezone.utc)
CHANNELS = ["a", "b.c", "B", "é", "it's", '"id" ', "{}"]
TYPES = ["log", "metric", "run", "LOG", "", "日志", None]
COLUMNS = (
    "id string, channel string, timestamp timestamp, level string, cls_type string, "
    "quarantine struct<file string, offset bigint, reason string, raw string>"
)

# Each is SQL in which Spark and DuckDB agree; {a} and {b} are conditions.
QUESTIONS = [
    "SELECT count(*) FROM events",
    "SELECT count(*) FROM events WHERE {a}",
    "SELECT id, channel, level, cls_type FROM events WHERE {a}",
    "SELECT count(*) FROM events WHERE {a} OR {b}",
    "SELECT count(*) FROM events WHERE NOT ({a})",
    "SELECT level, count(*), min(id), max(timestamp) FROM events WHERE {a} GROUP BY level",
    "SELECT channel, count(*) FROM events GROUP BY channel HAVING count(*) > 9",
    "SELECT (SELECT count(*) FROM events WHERE {a}), (SELECT count(*) FROM events WHERE {b})",
    "SELECT id FROM events WHERE {a} UNION ALL SELECT id FROM events WHERE {b}",
    "SELECT count(*) FROM events x JOIN events y ON x.id = y.id WHERE x.{a} AND y.{b}",
    "SELECT count(*) FROM events x LEFT JOIN (SELECT id FROM events WHERE {a}) y ON x.id = y.id WHERE y.id IS NULL",
    "SELECT id FROM events WHERE {a} AND id NOT IN (SELECT id FROM events WHERE {b} AND id IS NOT NULL)",
    "SELECT count(*) FROM events WHERE is_bad",
]


def condition(chance: random.Random) -> str:
    """Return a condition that begins with a column's name."""

    def text(value: str | None) -> str:
        return "'" + (value or "").replace("'", "''") + "'" if "'" not in (value or "") else "'zz'"

    moment = f"TIMESTAMP '{NOON + timedelta(hours=chance.randint(-9, 9)):%Y-%m-%d %H:%M:%S}+00:00'"
    return chance.choice(
        [
            f"level = {text(chance.choice(['ERROR', 'INFO', 'none']))}",
            f"level <> {text(chance.choice(['ERROR', 'INFO']))}",
            f"level IN ('ERROR', {text(chance.choice(['DEBUG', 'x']))})",
            "level IS NOT NULL",
            f"channel > {text(chance.choice(CHANNELS))}",
            f"channel IN ({text(chance.choice(CHANNELS))}, {text(chance.choice(CHANNELS))})",
            f"cls_type = {text(chance.choice(TYPES))}",
            "cls_type IS NULL",
            f"timestamp {chance.choice(['<', '>=', '=', '<=', '>'])} {moment}",
            f"id LIKE '%{chance.randint(0, 9)}'",
        ]
    )


@pytest.fixture(scope="module", autouse=True)
def quick(spark: Any) -> Iterator[None]:
    """Shuffle to one partition: there are few rows and many questions."""
    from balog.analytics.spark_engine import spark_settings

    with spark_settings(spark, {"spark.sql.shuffle.partitions": "1"}):
        yield


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Events of many channels, levels, types and hours over files of stores and others, and bad lines."""
    chance = random.Random(14)
    root = tmp_path_factory.mktemp("frames")
    files = ["t/date=2026-11-20/a.jsonl", "t/date=2026-11-19/b.jsonl", "c.jsonl"]
    (root / "t" / "_manifest").mkdir(parents=True)
    lines: dict[str, list[str]] = {name: [] for name in files}
    for number in range(400):
        moment = NOON + timedelta(hours=chance.randint(-12, 11), microseconds=chance.choice([0, 0, 1, 999_999]))
        header = {
            "id": f"LG{number:022d}",
            "channel": chance.choice(CHANNELS),
            "timestamp": moment.isoformat(),
            "level": chance.choice(["DEBUG", "INFO", "ERROR", "CRITICAL"]),
            "context": {"application": chance.choice(["x", "y"]), "run_id": f"r{number % 5}"},
        }
        kind = chance.choice(TYPES)
        payload = {
            **({} if kind is None else {"cls_type": kind}),
            "message": f"m{number}",
            "metric": chance.choice(["http_request_duration", "sync_duration"]),
            "type": "timer",
            "value": number,
            "tags": {"stream": chance.choice(["s", "t"]), "endpoint": "e"},
        }
        event = {"schema": "0.1.0", "header": header, "payload": payload}
        lines[chance.choice(files)].append(json.dumps(event))
    for name, found in lines.items():
        found.insert(chance.randrange(len(found)), "{broken")
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(found) + "\n")
    return root


@pytest.fixture(scope="module")
def oracle(dump: Path) -> Any:
    """DuckDB with the table ``events`` of the same lines."""
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(
            "CREATE TABLE events (id VARCHAR, channel VARCHAR, timestamp TIMESTAMPTZ, level VARCHAR, "
            "cls_type VARCHAR, is_bad BOOLEAN)"
        )
        rows: list[list[Any]] = []
        for path in sorted(dump.rglob("*.jsonl")):
            for line in path.read_text().splitlines():
                try:
                    event = json.loads(line)
                except ValueError:
                    rows.append([None, None, None, None, None, True])
                    continue
                header = event["header"]
                values = (header[name] for name in ("id", "channel", "timestamp", "level"))
                rows.append([*values, event["payload"].get("cls_type"), False])
        connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", rows)
        yield connection


def plain(rows: list[Any]) -> list[tuple[Any, ...]]:
    """Return rows sorted, with instants as their microseconds."""

    def value(one: Any) -> Any:
        return one.astimezone(timezone.utc).isoformat() if isinstance(one, datetime) else one

    return sorted((tuple(map(value, row)) for row in rows), key=repr)


@pytest.mark.parametrize("seed", seeds(30))
def test_a_sequence_of_questions_on_one_frame_is_answered_as_by_duckdb(
    spark: Any, dump: Path, oracle: Any, seed: int
) -> None:
    chance = random.Random(seed)
    frame = spark.read.format("balog").schema(COLUMNS).load(str(dump))
    view = f"frame_{seed}"
    frame = frame.selectExpr("*", "quarantine IS NOT NULL AS is_bad").drop("quarantine")
    frame.createOrReplaceTempView(view)
    kept = chance.random() < 0.2
    for number in range(3):
        if kept and number == 1:
            spark.catalog.cacheTable(view)
        sql = chance.choice(QUESTIONS).format(a=condition(chance), b=condition(chance))
        found = spark.sql(sql.replace("events", view)).collect()
        assert plain(found) == plain(oracle.execute(sql.replace("TIMESTAMP '", "TIMESTAMPTZ '")).fetchall()), sql
    if kept:
        spark.catalog.uncacheTable(view)


def test_every_notebook_function_gives_the_same_on_a_used_frame_as_on_a_fresh_one(spark: Any, dump: Path) -> None:
    from balog.analytics import functions

    def questions(events: Any) -> dict[str, Callable[[], Any]]:
        span = NOON - timedelta(hours=6), NOON
        names = set(functions.__all__) - {"as_rollups", "between"}
        asked = {name: (lambda name=name: getattr(functions, name)(events)) for name in sorted(names)}
        asked["between"] = lambda: functions.channels(functions.between(events, *span))
        return asked

    used = spark.read.format("balog").load(str(dump))
    assert used.where("level = 'ERROR' AND timestamp >= '2026-11-20'").count()
    assert used.where("cls_type = 'metric'").groupBy("channel").count().collect()
    frames = questions(used)
    assert len(frames) == 7
    for name, unused in questions(spark.read.format("balog").load(str(dump))).items():
        found, fresh = ([row[0] for row in _as_json(ask()).collect()] for ask in (frames[name], unused))
        assert found == fresh, name
        assert fresh


def _as_json(frame: Any) -> Any:
    return frame.selectExpr("to_json(struct(*))")


def test_streams_of_one_frame_each_apply_their_own_filter(spark: Any, dump: Path, oracle: Any, tmp_path: Path) -> None:
    frame = spark.readStream.format("balog").schema(COLUMNS).option("state", str(tmp_path / "state")).load(str(dump))
    for number, where in enumerate(("level = 'ERROR'", "cls_type = 'log'", "true")):
        query = (
            frame.where(where)
            .select("id")
            .writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / f"checkpoint{number}"))
            .trigger(availableNow=True)
            .start(str(tmp_path / f"out{number}"))
        )
        query.awaitTermination(120)
        assert query.exception() is None
        found = spark.read.parquet(str(tmp_path / f"out{number}")).collect()
        assert plain(found) == plain(oracle.execute(f"SELECT id FROM events WHERE {where}").fetchall())
