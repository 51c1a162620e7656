"""Reports and queries on the embedded engine: the processes here can't import pyspark, pandas and pytz."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.generate import lines

TABLES = Path(__file__).parents[1] / "data" / "tables"
"""300 events of a day and one invalid line, loaded by Spark."""

COMMAND = "from balog.cli import main; main()"
FUNCTIONS = """
import json, sys
from balog import analytics
from balog.analytics.rollups.raw_files import open_rollups
with open_rollups({"path": sys.argv[1]}) as found:
    rows = analytics.channels(found.rollups).rows() + analytics.runs(found.rollups).rows()
    rows += analytics.metrics(found.rollups, by=["stream"]).rows() + analytics.failures(found.rollups).rows()
print(json.dumps(rows, default=str))
"""


@pytest.fixture
def run(tmp_path: Path):
    """Return a function that runs a program."""
    hidden = tmp_path / "hidden"
    for name in ("pyspark", "pandas", "pytz"):
        (hidden / name).mkdir(parents=True)
        said = f"import sys; print('{name} is imported', file=sys.stderr); raise ImportError('hidden')"
        (hidden / name / "__init__.py").write_text(said)

    def run_program(program: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        # the reader's own processes get this path, too
        before = f"import sys; sys.path.insert(0, {str(hidden)!r}); sys.modules.update(pyspark=None)"
        command = [sys.executable, "-c", f"{before}; {program}", *arguments]
        environment = {**os.environ, "COLUMNS": "150"}
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)

    return run_program


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """A folder with events that are more than one task."""
    folder = tmp_path / "dump"
    folder.mkdir()
    (folder / "events.jsonl").write_bytes(b"".join(lines(9_000_000)))
    return folder


def loaded() -> Counter[str]:
    log = json.loads(next((TABLES / "_balog" / "log").glob("*.json")).read_text())
    return Counter({name: sum(file["rows"] for file in table["added"]) for name, table in log["tables"].items()})


def test_the_report_of_tables_has_a_page_with_charts(run, tmp_path: Path) -> None:
    done = run(COMMAND, "report", TABLES, "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["source"] == "rollups"
    assert "pandas is imported" not in done.stderr  # pyarrow imports it in some calls, for 0.2 s of each process
    assert report["events"] == loaded()["events"] == 300
    assert "<svg" in (tmp_path / "balog-report.html").read_text()


def test_a_query_on_tables(run) -> None:
    done = run(COMMAND, "query", "SELECT count(*) AS n FROM events", "--tables", TABLES, "--format", "jsonl")
    assert (done.returncode, done.stdout) == (0, '{"n":300}\n'), done.stderr
    assert "pandas is imported" not in done.stderr


def test_the_report_of_files_and_the_functions_of_notebooks(run, dump: Path) -> None:
    counted = Counter(
        json.loads(line)["header"]["channel"] for line in (dump / "events.jsonl").read_bytes().splitlines()
    )
    done = run(COMMAND, "report", dump, "--json", "--no-html", "--where", "channel <> 'x'")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["events"] == sum(counted.values())
    assert "pandas is imported" not in done.stderr
    done = run(FUNCTIONS, dump)
    assert done.returncode == 0, done.stderr
    channels: Counter[str] = Counter()
    for row in json.loads(done.stdout):
        if set(row) == {"channel", "level", "events", "errors", "first", "last"}:
            channels[row["channel"]] += row["events"]
    assert channels == counted
