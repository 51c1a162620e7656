"""``balog report --engine`` on tables."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from balog.analytics.reporting.model import encode
from balog.analytics.reporting.query import parse_query
from balog.analytics.reporting.spark_report import make_report
from balog.cli import main
from balog.cli.report import command
from tests.analytics.questions.test_functions_on_engines import assert_equal
from tests.loaded_tables import load_tables

pytestmark = pytest.mark.spark


def test_duckdb_reports_stored_rollups_as_spark_does_and_auto_chooses_it(
    spark: Any, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = str(tmp_path / "tables")
    load_tables(spark, tables, [root])
    for options in ([], ["--since", "2026-10-02", "--until", "2026-10-03"]):
        expected = json.loads(encode(make_report(spark, [tables], parse_query(*options[1::2]))))
        for engine in ("auto", "duckdb"):
            with monkeypatch.context() as patched:
                patched.setattr("balog.cli.shared.spark.SparkPlace.session", None)  # Spark can't start
                run = CliRunner().invoke(command, [tables, "--no-html", "--json", "--engine", engine, *options])
            assert run.exit_code == 0, run.output
            found = json.loads(run.stdout)
            assert found.pop("made")
            assert_equal(found, {name: value for name, value in expected.items() if name != "made"})


def test_duckdb_refuses_what_only_spark_answers() -> None:
    run = CliRunner().invoke(main, ["report", "kafka:127.0.0.1:1#a", "--engine", "duckdb", "--no-html"])
    assert run.exit_code == 2
    assert "give spark" in run.output
