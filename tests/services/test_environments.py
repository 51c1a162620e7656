"""The base install lives beside what taps and targets pin: an environment for each, from the wheel that users get."""

import json
import sys
import zipfile
from pathlib import Path

import pytest

from tests.programs import run_program
from tests.services.environments import ROOT, install

pytestmark = pytest.mark.service

NEIGHBOURS = ["singer-python==6.8.0", "singer-sdk", "target-jsonl==0.1.4"]
TABLES = ROOT / "tests" / "data" / "tables"
COUNT_CHANNELS = """
from balog import analytics
from balog.analytics.rollups.raw_files import open_rollups
with open_rollups({"path": "a.jsonl"}) as found:
    print([row["channel"] for row in analytics.channels(found.rollups).rows()])
"""
LOG_ONE_EVENT = """
import balog
balog.configure(output="singer")
balog.get_logger("beside").info("done", payload={"cls_type": "null"})
"""


def run(*command: str | Path, cwd: Path) -> str:
    return run_program(*command, cwd=cwd).stdout


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skips where the package index can't be reached."""
    probe = install(tmp_path_factory.mktemp("probe") / "environment", "setuptools")
    if probe.returncode:
        pytest.skip(f"the package index can't be reached: {probe.stderr.strip().splitlines()[-1:]}")


@pytest.fixture(scope="module")
def wheel(index: None, checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, checkout, cwd=folder)
    return next(folder.glob("balog_events-*.whl"))


@pytest.fixture(scope="module", params=NEIGHBOURS)
def beside(request: pytest.FixtureRequest, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commands of an environment that holds balog's base install and one neighbour."""
    environment = tmp_path_factory.mktemp("beside") / "environment"
    done = install(environment, wheel, request.param)
    assert done.returncode == 0, done.stderr
    return environment / "bin"


@pytest.fixture(scope="module")
def embedded(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commands of an environment that has only the extra for questions on this machine."""
    environment = tmp_path_factory.mktemp("embedded") / "environment"
    done = install(environment, f"{wheel}[embedded]")
    assert done.returncode == 0, done.stderr
    assert not {path.name for path in environment.glob("lib/*/site-packages/*")} & {"pyspark", "pandas", "fsspec"}
    return environment / "bin"


def test_the_wheel_has_every_schema_and_no_handlers_of_the_checkout(wheel: Path, checkout: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    schemas = {f"balog/schemas/{path.relative_to(checkout / 'schemas')}" for path in checkout.glob("schemas/**/*.json")}
    assert schemas
    assert schemas <= names
    assert {name.split("/")[0] for name in names if not name.startswith("balog_events-")} == {
        "balog",
        "balog_pytest.py",
    }
    assert "balog/py.typed" in names


def test_every_package_of_the_checkout_is_in_the_wheel(wheel: Path, checkout: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {str(path.relative_to(checkout)) for path in checkout.glob("balog/**/*.py")} <= names


def test_nothing_that_is_installed_conflicts(beside: Path, tmp_path: Path) -> None:
    assert "No broken requirements" in run(beside / "python", "-m", "pip", "check", cwd=tmp_path)


def test_the_logger_writes_an_event_there(beside: Path, tmp_path: Path) -> None:
    message = json.loads(run(beside / "python", "-c", LOG_ONE_EVENT, cwd=tmp_path))
    assert message["type"] == "LOG"
    assert message["value"]["header"]["channel"] == "beside.done"


def test_the_command_runs_there(beside: Path, tmp_path: Path) -> None:
    assert run(beside / "balog", "--version", cwd=tmp_path).startswith("balog ")
    assert "broker" in run(beside / "balog", "--help", cwd=tmp_path)


def test_the_broker_passes_a_stream_there_without_any_extra(beside: Path, tmp_path: Path) -> None:
    (tmp_path / "broker.json").write_text('{"sinks": []}')
    stream = '{"type": "STATE", "value":  {"a":1}}\n'
    done = run_program(beside / "balog", "broker", "--config", "broker.json", cwd=tmp_path, feed=stream)
    assert done.stdout == stream


def test_a_report_of_tables_needs_only_the_extra_embedded(embedded: Path, tmp_path: Path) -> None:
    report = json.loads(run(embedded / "balog", "report", TABLES, "--json", cwd=tmp_path))
    assert (report["source"], report["events"]) == ("rollups", 300)
    assert "<svg" in (tmp_path / "balog-report.html").read_text()


def test_a_report_of_files_and_functions_need_only_the_extra_embedded(embedded: Path, tmp_path: Path) -> None:
    header = {"id": "a", "channel": "tap.done", "timestamp": "2026-11-20T07:46:12Z", "level": "INFO"}
    event = {"schema": "0.1.0", "header": header, "payload": {"cls_type": "null"}}
    (tmp_path / "a.jsonl").write_text(json.dumps(event) + "\n{broken\n")
    report = json.loads(run(embedded / "balog", "report", "a.jsonl", "--json", "--no-html", cwd=tmp_path))
    assert (report["events"], report["quarantined"]) == (1, 1)
    assert run(embedded / "python", "-c", COUNT_CHANNELS, cwd=tmp_path) == "['tap.done']\n"


def test_a_query_needs_only_the_extra_embedded(embedded: Path, tmp_path: Path) -> None:
    command = embedded / "balog", "query", "SELECT count(*) AS n FROM events", "--tables", TABLES, "--format", "jsonl"
    assert run(*command, cwd=tmp_path) == '{"n":300}\n'


PUBLIC_NAMES = """
import importlib, sys
sys.path.insert(0, sys.argv[1])
import python_reference
for name in python_reference.MODULES:
    module = importlib.import_module(name)
    [getattr(module, public) for public in getattr(module, "__all__", [])]
"""


def test_the_site_needs_only_the_extra_docs(wheel: Path, tmp_path: Path) -> None:
    done = install(tmp_path / "environment", f"{wheel}[docs]")
    assert done.returncode == 0, done.stderr
    run(tmp_path / "environment" / "bin" / "python", "-c", PUBLIC_NAMES, ROOT / ".ci" / "docs", cwd=tmp_path)
