"""Tables in a Hive metastore (Derby).

They are loaded in a process of their own, since a session's catalog is decided at its start.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.programs import run_program

# The steps take a minute; they are not run once more for each test.
pytestmark = [pytest.mark.service, pytest.mark.flaky(reruns=0)]

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hive")


@pytest.fixture(scope="module")
def said(folder: Path) -> dict[str, Any]:
    """Take the steps."""
    steps = ROOT / "tests" / "services" / "catalog_steps.py"
    places = (f"hive:balog?location={folder}/tables", f"hive:loads?location={folder}/loads")
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = run_program(sys.executable, steps, *places, cwd=folder, env=variables, code=None)
    said = [line for line in done.stdout.splitlines() if line.startswith("SAID ")]
    assert said, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(said[0].removeprefix("SAID "))
    return found


def test_a_new_place_has_no_tables(said: dict[str, Any]) -> None:
    assert said["empty"] == [[], None]


def test_a_batch_that_is_told_twice_is_there_once_and_tables_grow_over_what_they_have(said: dict[str, Any]) -> None:
    one, two, three = said["grown"]
    assert one == {
        "id": "LG1",
        "timestamp": "2026-11-20T07:46:12.000Z",
        "a": 1,
        "s": {"x": 1, "l": [{"y": 1.5}]},
        "date": "2026-11-20",
    }
    assert (two["a"], two["date"], "s" in two) == (2, "2026-11-21", False)
    assert (three["a"], three["s"]) == (2**40, {"x": 2**40, "l": [{"y": 2.5, "w": "new"}], "z": "it's"})
    assert three["größe_2"] == 2**70


def test_the_schema_comes_back_with_the_fields_names(said: dict[str, Any]) -> None:
    assert said["widens"] is False
    assert said["field"] == {"field": "Größe"}
    assert said["columns"] == ["id", "timestamp", "a", "s", "größe_2", "date"]


def test_after_a_kill_in_the_middle_the_batch_is_there_once(said: dict[str, Any]) -> None:
    assert said["after"] == [["LG1", "LG2", "LG3", "LG4", "LG5"]] * 2
    assert said["loaded"] == ["a.jsonl"]


def test_days_outside_of_the_time_are_left_out(said: dict[str, Any]) -> None:
    assert said["since"] == ["LG2", "LG5"]


def test_old_days_go_and_the_others_stay_over_a_compaction(said: dict[str, Any]) -> None:
    assert [line.split(":")[0] for line in said["dry"]] == ["events", "thing"]
    assert said["expired"] == said["compacted"] == ["LG2", "LG5"]


def test_the_metastore_knows_tables_partitions_and_rows(said: dict[str, Any]) -> None:
    assert said["hive"] == {
        "tables": ["events", "thing"],
        "partitions": ["date=2026-11-21"],
        "rows": ['{"id":"LG2","a":2}', '{"id":"LG5","a":5}'],
    }


def test_a_load_says_what_is_new_and_a_second_adds_nothing(said: dict[str, Any]) -> None:
    loads = said["loads"]
    events = sum(count for _, count in loads["kinds"])
    assert f"events {events} rows" in [" ".join(line.split()) for line in loads["first"]]
    assert not [line for line in loads["again"] if "rows" in line]
    assert "1 file was loaded before and not changed since" in loads["again"]


def test_the_report_and_questions_have_the_loaded_events(said: dict[str, Any]) -> None:
    loads = said["loads"]
    report = loads["report"]
    events = sum(count for _, count in loads["kinds"])
    assert (report["source"], report["events"], report["quarantined"]) == ("rollups", events, 1)
    assert report["totals"]["runs"] == 4
    assert loads["answer"] == ["cls_type,n", *(f"{kind},{count}" for kind, count in loads["kinds"])]
