"""The benchmarks of asking run, and find what they compare equal. How fast anything is, is not for a test to say."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark


def quick(name: str, folder: Path) -> str:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", f"benchmarks.{name}", "--quick", "--folder", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=root, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_all_ways_to_report_are_equal_on_a_small_dump(tmp_path: Path) -> None:
    said = quick("report", tmp_path)
    assert said.count("all tables equal") == 2
    assert said.count("  spark.read.json  ") == said.count("balog, rollups") == said.count("balog, embedded") == 2
    shell = re.findall(r"^  (files|day), ([\w ]+?) +[\d.]+ s +[\d.]+ s +[1-9][\d,]* MB$", said, re.MULTILINE)
    assert {what for what, _ in shell} == {"files", "day"}
    assert [way for _, way in shell] == ["embedded", "Spark", "DuckDB alone", "report", "no page", "query"]
    assert "plain: embedded is " in said


def test_a_load_and_plain_spark_find_the_same_number_of_events(tmp_path: Path) -> None:
    said = quick("load", tmp_path)
    assert said.count("× balog's time") == 6


def test_growth_is_told_for_each_job_and_size_and_a_model_says_the_largest(tmp_path: Path) -> None:
    said = quick("scaling", tmp_path)
    runs, errors, laws, day = re.split(r"\n\n(?=what the model|The laws|An estimate)", said)
    assert len(re.findall(r"^load +1 .* 1 .* files: [1-9]\d*, [1-9]\d*, [1-9]\d*$", runs, re.MULTILINE)) == 2
    assert len(re.findall(r"^load +1 .* files: ", runs, re.MULTILINE)) == 3  # one in several commits
    assert len(re.findall(r"^report +1 .* [1-9]\d* .* MB$", runs, re.MULTILINE)) == 2
    assert "largest errors (target 15 %): clock " in errors
    assert "load   files of events" in laws
    assert len(re.findall(r"core hours, [\d,]+ tasks, .* GB shuffled, driver ", day)) == 3
