"""Events out of tables are the events that were loaded, from both engines, in the order of their times."""

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

pytest.importorskip("pyspark", reason="pyspark is not installed")

from balog.analytics.querying.spark_statement import documents
from balog.analytics.querying.stored_events import event_of, events_query
from balog.analytics.tables import open_tables
from balog.analytics.tables.local import StoredTables
from balog.cli.watch import command
from balog.event import Event, decode
from balog.watch.config.config_check import load_monitors
from balog.watch.history.backtest import run_backtest, select_events
from tests.loaded_tables import load_tables
from tests.watch.history_events import BEGIN, lines, monitors

pytestmark = pytest.mark.spark

DAYS = 4
END = BEGIN + timedelta(days=DAYS)


@pytest.fixture(scope="module")
def made() -> list[str]:
    return lines(5, every=2, days=DAYS)


@pytest.fixture(scope="module")
def place(spark: Any, made: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of four days, loaded in another order, some events twice."""
    folder = tmp_path_factory.mktemp("history")
    (folder / "a.jsonl").write_text("\n".join([*reversed(made), *made[:50]]) + "\n")
    load_tables(spark, folder / "tables", [folder / "a.jsonl"])
    return folder / "tables"


def of_duckdb(place: Path, query: str) -> list[Event]:
    from balog.analytics.embedded.database import ask

    with ask(StoredTables(str(place)), query.replace("unix_micros(", "epoch_us(")) as answer:
        return [event_of(row) for row in answer.rows()]


def of_spark(spark: Any, place: Path, query: str) -> list[Event]:
    from balog.analytics.querying.spark_statement import ask

    return [event_of(row) for row in documents(ask(spark, open_tables(spark, str(place)), query), None)]


def plain(event: Event) -> Any:
    header = event.header
    return (
        header.id,
        header.channel,
        header.timestamp,
        header.level,
        header.context,
        json.loads(bytes(event.raw_payload)),
    )


def test_both_engines_return_the_events_that_were_loaded(spark: Any, place: Path, made: list[str]) -> None:
    chosen = select_events(monitors())
    query = events_query(chosen.types, BEGIN, END, errors=chosen.errors)
    expected = [plain(one) for one in map(decode, made)]

    assert [plain(one) for one in of_duckdb(place, query)] == expected
    assert [plain(one) for one in of_spark(spark, place, query)] == expected


def test_a_time_and_types_select_events(place: Path, made: list[str]) -> None:
    since, until = BEGIN + timedelta(days=1, minutes=7), BEGIN + timedelta(days=2, hours=5)
    found = of_duckdb(place, events_query(["run"], since, until))
    with_errors = of_duckdb(place, events_query(["run"], since, until, errors=True))

    events = [one for one in map(decode, made) if since <= one.header.timestamp < until]
    assert [one.header.id for one in found] == [one.header.id for one in events if one.cls_type == "run"]
    assert [one.header.id for one in with_errors] == [
        one.header.id for one in events if one.cls_type == "run" or one.level == "ERROR"
    ]


def test_the_command_gives_the_alerts_of_the_stream(place: Path, made: list[str], tmp_path: Path) -> None:
    path = tmp_path / "monitors.json"
    chosen = [msgspec.to_builtins(one) for one in monitors()]
    cleaned = [{name: value for name, value in one.items() if value is not None} for one in chosen]
    path.write_bytes(msgspec.json.encode({"monitors": cleaned}))
    given = [str(path), "--tables", str(place), "--backtest", f"{DAYS}d", "--until", END.isoformat(), "--json"]
    done = CliRunner().invoke(command, given)
    assert done.exit_code == 0, done.output

    expected = run_backtest(monitors(), map(decode, made), BEGIN.timestamp(), END.timestamp())
    assert json.loads(done.stdout) == msgspec.to_builtins(expected)
    assert expected.firings

    table = CliRunner().invoke(command, given[:-1])
    assert table.exit_code == 0
    assert "thin" in table.stdout
    assert f"{len(made)} events".replace(",", "") in table.stderr.replace(",", "")


def test_suggested_monitors_pass_the_check(place: Path, made: list[str], tmp_path: Path) -> None:
    age = (datetime.now(timezone.utc) - BEGIN).days + 1
    done = CliRunner().invoke(command, ["suggest", "--tables", str(place), "--backtest", f"{age}d", "--per-week", "2"])
    assert done.exit_code == 0, done.output
    path = tmp_path / "monitors.yaml"
    path.write_text(done.stdout)
    assert {one.kind for one in load_monitors(path)} >= {"freshness", "volume", "duration", "failures"}


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (["--tables", "nowhere"], "there are no tables"),
        ([], "give --tables"),
        (["--tables", "PLACE", "--backtest", "soon"], "not a duration"),
        (["--tables", "PLACE", "--backtest", "0d"], "above 0"),
        (["--tables", "PLACE", "--until", "never"], "not a time"),
        (["--tables", "PLACE", "--engine", "duckdb", "--master", "local"], "--engine spark"),
    ],
)
def test_wrong_use_is_one_line(place: Path, tmp_path: Path, given: list[str], reason: str) -> None:
    path = tmp_path / "monitors.yaml"
    path.write_text("monitors:\n  - {name: late, freshness: {every: 1h}}\n")
    done = CliRunner().invoke(command, ["backtest", str(path), *(one.replace("PLACE", str(place)) for one in given)])
    assert reason in str(done.exception)
    assert type(done.exception).__name__ == "ConfigError"
