"""The benchmarks of asking run, and find what they compare equal. How fast anything is, is not for a test to say."""

import importlib
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

pytestmark = pytest.mark.spark


def quick(name: str, folder: Path, spark: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a benchmark in this process, with the tests' session."""
    module = importlib.import_module(f"benchmarks.{name}")
    monkeypatch.setattr(module, "session", lambda *_, **__: spark)
    monkeypatch.setattr(module, "events", partial(module.events, days=1))  # a day's tables have the fewest files
    monkeypatch.setattr(type(spark), "stop", lambda _: None)
    done = CliRunner().invoke(module.main, ["--quick", "--folder", str(folder)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_all_ways_to_report_are_equal_on_a_small_dump(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from benchmarks.commands import run_commands

    def without_java(commands: dict[str, Any], *others: Any) -> Any:
        return run_commands({name: words for name, words in commands.items() if "spark" not in words}, *others)

    monkeypatch.setattr("benchmarks.report.run_commands", without_java)
    said = quick("report", tmp_path, spark, monkeypatch)
    assert said.count("all tables equal") == 2
    assert said.count("  spark.read.json  ") == said.count("balog, rollups") == said.count("balog, embedded") == 2
    shell = re.findall(r"^  (files|day), ([\w ]+?) +[\d.]+ s +[\d.]+ s +[1-9][\d,]* MB$", said, re.MULTILINE)
    assert {what for what, _ in shell} == {"files", "day"}
    assert [way for _, way in shell] == ["embedded", "DuckDB alone", "report", "no page", "query"]
    assert len(re.findall(r"^ratio: [\d.]+ × DuckDB's time alone, (?:plain|gzip)", said, re.MULTILINE)) == 2


def test_a_load_and_plain_spark_find_the_same_number_of_events(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = quick("load", tmp_path, spark, monkeypatch)
    assert said.count("× balog's time") == 6
