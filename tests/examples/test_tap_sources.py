"""The examples of a database and of a folder: their sizes, practices, and rows in a target after twenty kills."""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from balog.tap.verify import Options
from balog.tap.verify.testing import TapPractices
from tests.examples.pipelines import ROOT, Pipeline
from tests.services.servers.postgres import Database, running_postgres

POSTGRES, FOLDER = ROOT / "examples" / "tap_postgres.py", ROOT / "examples" / "tap_folder.py"

TABLES = """
CREATE TABLE orders (shop text, id int, note text, PRIMARY KEY (shop, id));
INSERT INTO orders SELECT 'shop ' || i % 7, i, repeat('x', i % 20) FROM generate_series(1, 7000) i;
CREATE TABLE people (id bigint PRIMARY KEY, name varchar(20), born date);
INSERT INTO people SELECT i, 'name ' || i, date '1990-01-01' + i FROM generate_series(1, 300) i;
CREATE VIEW adults AS SELECT name, born FROM people;
"""


def fill(folder: Path, files: int = 12) -> None:
    folder.mkdir()
    for number in range(files):
        at = 1_700_000_000 + number // 2 * 86_400  # always two of the same time
        orders, events = folder / f"orders-{number:02}.csv", folder / f"events-{number:02}.jsonl"
        orders.write_text("id,name\n" + "".join(f"{number * 100 + row},row {row}\n" for row in range(50)))
        events.write_text("".join(json.dumps({"kind": f"k{row % 3}", "n": row}) + "\n" for row in range(40)))
        for path in (orders, events):
            os.utime(path, (at, at))


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    pytest.importorskip("psycopg2")
    with running_postgres() as server:
        made = server.database("example")
        made.run(TABLES)
        yield made


def test_they_have_less_than_25_and_15_lines_of_code() -> None:
    def lines(path: Path) -> int:
        code = path.read_text().split('"""', 2)[2]
        return len([line for line in code.splitlines() if line.strip()])

    assert lines(POSTGRES) < 25
    assert lines(FOLDER) < 15


def interrupted(pipeline: Pipeline, longest: int) -> None:
    chance = random.Random(20261124)
    codes = [pipeline.run(kill_after=chance.randrange(2, longest)) for _ in range(20)]
    assert -9 in codes
    assert pipeline.run() == 0


@pytest.mark.service
def test_a_target_has_the_database_s_rows_after_twenty_kills(database: Database, tmp_path: Path) -> None:
    pipeline = Pipeline(tmp_path, POSTGRES, {"url": database.url})
    interrupted(pipeline, 6000)

    orders, people = database.ask("SELECT * FROM orders"), database.ask("SELECT * FROM people")
    assert pipeline.rows("orders", "shop", "id") == {(row["shop"], row["id"]): row for row in orders}
    assert pipeline.rows("people", "id") == {(row["id"],): row for row in people}
    adults = {(row["name"],): row for row in database.ask("SELECT * FROM adults")}
    assert pipeline.rows("adults", "name") == adults


@pytest.mark.service
def test_a_target_has_the_folder_s_rows_after_twenty_kills(tmp_path: Path) -> None:
    fill(tmp_path / "in")
    pipeline = Pipeline(tmp_path, FOLDER, {"path": str(tmp_path / "in")})
    interrupted(pipeline, 900)

    orders = pipeline.rows("orders", "id")
    assert {key: row["name"] for key, row in orders.items()} == {
        (str(number * 100 + row),): f"row {row}" for number in range(12) for row in range(50)
    }
    events = pipeline.rows("events", "_sdc_source_file", "_sdc_source_lineno")
    assert {key: (row["kind"], row["n"]) for key, row in events.items()} == {
        (f"events-{number:02}.jsonl", row + 1): (f"k{row % 3}", row) for number in range(12) for row in range(40)
    }


@pytest.mark.filterwarnings("error::balog.tap.verify.testing.TapWarning")
class TestTapFolder(TapPractices):
    """A test for each practice, on one verification; a warning fails it, too."""

    options = Options(states=1)

    @pytest.fixture(scope="module")
    @classmethod
    def tap_command(cls, tmp_path_factory: pytest.TempPathFactory) -> Sequence[str]:
        """The tap and a folder."""
        folder = tmp_path_factory.mktemp("folder")
        fill(folder / "in")
        (folder / "config.json").write_text(json.dumps({"path": str(folder / "in")}))
        return [sys.executable, str(FOLDER), "--config", str(folder / "config.json")]


# Not marked as a service: practices that do not apply are skips. The test of the target needs the database.
@pytest.mark.filterwarnings("error::balog.tap.verify.testing.TapWarning")
class TestTapPostgres(TapPractices):
    """A test for each practice, on one verification; a warning fails it, too."""

    options = Options(states=1)

    @pytest.fixture(scope="module")
    @classmethod
    def tap_command(cls, tmp_path_factory: pytest.TempPathFactory, database: Database) -> Sequence[str]:
        """The tap and a database."""
        folder = tmp_path_factory.mktemp("postgres")
        (folder / "config.json").write_text(json.dumps({"url": database.url}))
        return [sys.executable, str(POSTGRES), "--config", str(folder / "config.json")]
