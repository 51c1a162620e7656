"""A tap made with balog.tap, piped into real targets: what they have at the end is what the source had.

Each target runs in an environment of its own.
"""

from __future__ import annotations

import csv
import gzip
import json
import sys
from collections.abc import Iterator
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from balog.event import decode
from tests.programs import environment_without, run_program
from tests.services.real_taps import installed
from tests.services.servers.postgres import Database, PostgresServer, running_postgres

pytestmark = pytest.mark.service

TAP = """
import json
from datetime import datetime
from decimal import Decimal
from pathlib import Path

from balog.tap import Tap

tap = Tap("tap-people", config_spec=["source"])


def instant(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


@tap.client
def client(config):
    return json.loads(Path(config["source"]).read_text(encoding="utf-8"))


@tap.stream("people", key_properties=["id"], replication_key="updated_at", bookmark_strategy=tap.every_n(2))
def people(client, context):
    for row in sorted(client["people"], key=lambda row: instant(row["updated_at"])):
        if context.bookmark is None or instant(row["updated_at"]) >= instant(context.bookmark):
            yield {**row, "price": row["price"] and Decimal(row["price"]), "updated_at": instant(row["updated_at"])}


@tap.stream("cities", key_properties=["code"])
def cities(client, context):
    with context.full_table():
        yield client["cities"]


def nullable(kind, **more):
    return {"type": ["null", kind], **more}


place = {"x": nullable("integer"), "tags": nullable("array", items={"type": "string"})}
tap.schema("people", {"type": "object", "properties": {
    "id": {"type": "integer"},
    "name": nullable("string"),
    "price": nullable("number", multipleOf=0.01),
    "is_new": nullable("boolean"),
    "place": nullable("object", properties=place),
    "born": nullable("string", format="date"),
    "updated_at": {"type": "string", "format": "date-time"},
}})
tap.schema("cities", {"type": "object", "properties": {"code": {"type": "string"}, "area": nullable("number")}})

if __name__ == "__main__":
    tap.run()
"""

PEOPLE = [
    {
        "id": number,
        "name": None if number == 2 else f'Zoë "{number}", 東京\n🙂',
        "price": None if number == 3 else f"{number * 1000 + 0.1:.2f}",
        "is_new": number % 2 == 0,
        "place": {"x": number, "tags": ["a", "b, c"]},
        "born": "1815-12-10",
        "updated_at": f"2026-11-20T07:{number:02}:12.250000+00:00",
    }
    for number in range(1, 6)
]
CITIES = [{"code": "BER", "area": 891.1}, {"code": "KRK", "area": None}, {"code": "ZRH", "area": 87.88}]
LATER = {**PEOPLE[0], "name": "Ada", "updated_at": "2026-11-21T00:00:00+00:00"}
NEW = {**PEOPLE[1], "id": 9, "updated_at": "2026-11-21T00:00:01+00:00"}


class Pipeline:
    """``tap | target`` in a folder; messages and states of the last run stay in it.

    Args:
        folder: empty.
        target: its program.
        config: the target's.
        between: what stands between the two, each as words of a command.
    """

    def __init__(self, folder: Path, target: str, config: dict[str, Any], *between: list[str]) -> None:
        self.folder = folder
        self._target, self._between = target, between
        self.environment = environment_without("BALOG_")
        (folder / "tap.py").write_text(TAP, encoding="utf-8")
        self.tap_config: dict[str, Any] = {"source": "source.json"}
        (folder / "target.json").write_text(json.dumps(config))
        (folder / "before.json").write_text("{}")

    def run(self, people: list[Any], cities: list[Any]) -> None:
        """Run it from the state that the run before left, and check what every run must keep."""
        (self.folder / "source.json").write_text(json.dumps({"people": people, "cities": cities}), encoding="utf-8")
        (self.folder / "tap.json").write_text(json.dumps(self.tap_config))
        tap = [sys.executable, "tap.py", "--config", "tap.json", "--state", "before.json"]
        parts = [tap, ["tee", "messages.jsonl"], *self._between, [self._target, "--config", "target.json"]]
        script = " | ".join(" ".join(f"'{word}'" for word in part) for part in parts)
        shell = ["bash", "-o", "pipefail", "-c", f"{script} > states.jsonl"]
        run_program(*shell, cwd=self.folder, env=self.environment)
        last = json.loads((self.folder / "states.jsonl").read_text().splitlines()[-1])
        assert last == [message["value"] for message in self.messages("STATE")][-1]
        (self.folder / "before.json").write_text(json.dumps(last))

    def messages(self, kind: str) -> list[dict[str, Any]]:
        lines = (self.folder / "messages.jsonl").read_text(encoding="utf-8").splitlines()
        return [message for message in map(json.loads, lines) if message["type"] == kind]

    def read(self) -> list[Any]:
        """The ids of the people that the last run sent."""
        return [message["record"]["id"] for message in self.messages("RECORD") if message["stream"] == "people"]


def as_sent(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows with numbers as numbers and instants in the one form that a tap gives them."""
    return [
        {
            **row,
            "price": None if row["price"] is None else float(row["price"]),
            "updated_at": instant(row["updated_at"]),
        }
        for row in rows
    ]


def instant(text: str) -> datetime:
    """Read one; PostgreSQL's, which have no zone here, are in UTC."""
    found = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)


def without_sdc(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows without the columns that targets add."""
    return [{key: value for key, value in row.items() if not key.startswith("_sdc_")} for row in rows]


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


class TestTargetCsv:
    def test_has_the_rows_of_the_source(self, tmp_path: Path) -> None:
        pipeline = Pipeline(tmp_path, installed("target-csv", "target-csv"), {"output_path": "."})
        pipeline.run(PEOPLE, CITIES)
        with (tmp_path / "people.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        assert [row["name"] for row in rows] == [row["name"] or "" for row in PEOPLE]
        assert [row["price"] and Decimal(row["price"]) for row in rows] == [
            row["price"] and Decimal(row["price"]) for row in [{**row, "price": row["price"] or ""} for row in PEOPLE]
        ]
        assert [instant(row["updated_at"]) for row in rows] == [instant(row["updated_at"]) for row in PEOPLE]
        assert [row["place"] for row in rows] == [str(row["place"]) for row in PEOPLE]
        assert (tmp_path / "cities.csv").read_text() == "code,area\nBER,891.1\nKRK,\nZRH,87.88\n"


class TestTargetJsonl:
    CONFIG = {"destination_path": ".", "do_timestamp_file": False}  # noqa: RUF012  # read only

    def test_has_the_rows_of_the_source_then_those_from_the_bookmark_on(self, tmp_path: Path) -> None:
        pipeline = Pipeline(tmp_path, installed("target-jsonl", "target-jsonl"), self.CONFIG)
        pipeline.run(PEOPLE, CITIES)
        assert as_sent(lines_of(tmp_path / "people.jsonl")) == as_sent(PEOPLE)
        assert lines_of(tmp_path / "cities.jsonl") == CITIES

        pipeline.run([LATER, *PEOPLE[1:], NEW], CITIES)
        assert as_sent(lines_of(tmp_path / "people.jsonl")) == as_sent([*PEOPLE, PEOPLE[-1], LATER, NEW])

    def test_has_them_behind_a_broker_which_takes_the_report(self, tmp_path: Path) -> None:
        """Given a tap that logs into its stream, when a broker strips that, then the archive has what was told."""
        sink = {"type": "store", "path": "archive", "topic": "events"}
        (tmp_path / "broker.json").write_text(json.dumps({"sinks": [sink], "strip": True}))
        broker = [str(Path(sys.executable).parent / "balog"), "broker", "--config", "broker.json"]
        pipeline = Pipeline(tmp_path, installed("target-jsonl", "target-jsonl"), self.CONFIG, broker)
        pipeline.environment["BALOG_OUTPUT"] = "singer"
        pipeline.run(PEOPLE, CITIES)
        assert as_sent(lines_of(tmp_path / "people.jsonl")) == as_sent(PEOPLE)
        assert lines_of(tmp_path / "cities.jsonl") == CITIES

        files = tmp_path.glob("archive/events/date=*/*.jsonl.gz")
        events = [decode(line) for path in files for line in gzip.decompress(path.read_bytes()).splitlines()]
        (report,) = [event.payload for event in events if event.cls_type == "run"]
        assert (report["outcome"], report["records"]) == ("succeeded", len(PEOPLE) + len(CITIES))


class TestTargetPostgres:
    """The Meltano SDK's."""

    @pytest.fixture
    def database(self, postgres: PostgresServer) -> Database:
        return postgres.database("target_sdk")

    @pytest.fixture
    def pipeline(self, tmp_path: Path, database: Database) -> Pipeline:
        config = {**database.config, "default_target_schema": "public", "hard_delete": True, "load_method": "upsert"}
        return Pipeline(tmp_path, installed("target-postgres", "target-postgres"), config)

    def test_has_rows_and_types_of_the_source_updates_and_deletions_of_the_second_run(
        self, pipeline: Pipeline, database: Database
    ) -> None:
        pipeline.run(PEOPLE, CITIES)
        assert as_sent(without_sdc(database.ask("SELECT * FROM people ORDER BY id"))) == as_sent(PEOPLE)
        assert without_sdc(database.ask("SELECT * FROM cities ORDER BY code")) == CITIES
        assert types_of("people", database) == {
            "id": "bigint",
            "name": "text",
            "price": "numeric",
            "is_new": "boolean",
            "place": "jsonb",
            "born": "date",
            "updated_at": "timestamp without time zone",
        }

        pipeline.run([LATER, *PEOPLE[1:], NEW], CITIES[:2])
        assert pipeline.read() == [5, 1, 9]
        assert as_sent(without_sdc(database.ask("SELECT * FROM people ORDER BY id"))) == as_sent(
            [LATER, *PEOPLE[1:], NEW]
        )
        assert without_sdc(database.ask("SELECT * FROM cities ORDER BY code")) == CITIES[:2]


class TestTargetPostgresOfPipelineWise:
    @pytest.fixture
    def database(self, postgres: PostgresServer) -> Database:
        return postgres.database("target_pipelinewise")

    @pytest.fixture
    def pipeline(self, tmp_path: Path, database: Database) -> Pipeline:
        config = {**database.config, "dbname": database.name, "default_target_schema": "public"}
        return Pipeline(tmp_path, installed("target-postgres-pipelinewise", "target-postgres"), config)

    def test_has_the_rows_of_the_source_and_the_updates_of_the_second_run(
        self, pipeline: Pipeline, database: Database
    ) -> None:
        def sent(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
            # It makes two characters of a line's end, whatever tap wrote it.
            return as_sent([{**row, "name": row["name"] and row["name"].replace("\n", "\\n")} for row in rows])

        pipeline.run(PEOPLE, CITIES)
        assert as_sent(without_sdc(database.ask("SELECT * FROM people ORDER BY id"))) == sent(PEOPLE)
        assert without_sdc(database.ask("SELECT * FROM cities ORDER BY code")) == CITIES
        assert types_of("people", database)["place"] == "jsonb"

        pipeline.run([LATER, *PEOPLE[1:], NEW], CITIES)
        assert as_sent(without_sdc(database.ask("SELECT * FROM people ORDER BY id"))) == sent([LATER, *PEOPLE[1:], NEW])


def types_of(table: str, database: Database) -> dict[str, str]:
    rows = database.ask(f"SELECT column_name, data_type FROM information_schema.columns WHERE table_name = '{table}'")
    return {row["column_name"]: row["data_type"] for row in rows if not row["column_name"].startswith("_sdc_")}


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server
