"""Reports and functions from files on the embedded engine: equal to Spark's, with one reader."""

import gzip
import json
import os
import random
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from balog.analytics import functions
from balog.analytics.reading.inputs import read_inputs
from balog.analytics.reporting.query import parse_query
from balog.analytics.reporting.report import make_raw_report, wanted_files
from balog.analytics.reporting.spark_report import make_report
from balog.analytics.rollups import from_files, raw_task, split
from balog.analytics.rollups.raw_files import open_rollups
from balog.analytics.spark_engine import SparkResult
from balog.cli import main
from balog.common.errors import BalogError
from tests.analytics.questions.conftest import MIDNIGHT, line
from tests.analytics.questions.test_functions_on_engines import QUESTIONS, assert_equal
from tests.waiting import wait_for

pytest.importorskip("duckdb", reason="duckdb is not installed")

NOW = MIDNIGHT + timedelta(days=1)
OPTIONS: dict[str, dict[str, str]] = {
    "all": {},
    "whole hours": {"since": "2026-11-20T22:00Z", "until": "2026-11-21T02:00Z"},
    "a condition": {"where": "level IN ('ERROR', 'INFO') AND context.run_id = 'r1'"},
    "a condition on payloads": {"where": "payload.metric = 'record_count' AND payload.value > 2"},
    "everything at once": {
        "since": "2026-11-20T21:30Z",
        "compare": "3h",
        "where": "channel LIKE '%log' AND cls_type <> 'metrics'",
    },
}


def hostile(seed: int) -> list[bytes]:
    """Make legal and illegal lines of all forms; some events occur several times, with different times."""
    dice = random.Random(seed)
    lines = [line(dice, number).encode() for number in range(700)]
    lines += dice.sample(lines, 40)
    later = [json.loads(text) for text in lines[:30] if b'"header"' in text]
    for whole in later:
        whole["header"]["timestamp"] = (MIDNIGHT + timedelta(seconds=dice.randrange(9000))).isoformat()
    lines += [json.dumps(whole).encode() for whole in later]
    lines += [b"\xff\xfe", b"[" * 5000, b'{"schema":"0.1.0","header":{},"payload":{}}', b"", b"   ", b"null"]
    dice.shuffle(lines)
    return lines


@pytest.fixture(scope="module", params=[1])
def files(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """Plain, gzip and damaged files of events, an SQS dump, a Singer stream, stderr and old lines."""
    root = tmp_path_factory.mktemp("raw")
    lines = hostile(request.param)
    third = len(lines) // 3
    (root / "a.jsonl").write_bytes(b"\n".join(lines[:third]))
    whole = gzip.compress(b"\n".join(lines[third : 2 * third]) + b"\n")
    (root / "b.jsonl.gz").write_bytes(whole)
    (root / "damaged.jsonl.gz").write_bytes(gzip.compress(b"\n".join(lines[2 * third :]) + b"\n")[:-40])
    good = [text.decode() for text in lines if text.startswith(b'{"schema": "0.1.0", "header": {"id"')]
    messages = [{"MessageId": f"m{number}", "Body": text} for number, text in enumerate(good[:50])]
    (root / "dump.json").write_text(json.dumps({"Messages": messages}))
    logs = [json.dumps({"type": "LOG", "level": "INFO", "value": json.loads(text)}) for text in good[50:80]]
    (root / "singer.jsonl").write_text("\n".join(['{"type": "STATE", "value": {}}', *logs]) + "\n")
    (root / "stderr.log").write_text(
        'INFO METRIC: {"type": "counter", "metric": "record_count", "value": 7, "tags": {}}\nINFO it works\n'
    )
    old = json.loads((Path(__file__).parents[2] / "data" / "event-0.0.1.json").read_text())
    (root / "old.jsonl").write_text(json.dumps(old) + "\n")
    return root


def comparable(report: Any) -> Any:
    """Return a report as plain data, without its time and the links of failures and runs, of which it names any."""
    found = msgspec.to_builtins(report)
    for failure in found["failures"]:
        del failure["runs"]
    for run in found["runs"]:
        del run["failures"]
    return {name: value for name, value in found.items() if name != "made"}


@pytest.mark.spark
@pytest.mark.parametrize("name", OPTIONS)
def test_a_report_from_files_is_equal_on_both_engines(spark: Any, files: Path, name: str) -> None:
    """Both engines make the same report from files, whatever is selected."""
    query = parse_query(**OPTIONS[name], now=NOW)
    listed = wanted_files(read_inputs({"path": str(files)}), query)
    expected = comparable(make_report(spark, [str(files)], query, len(listed)))
    found = comparable(make_raw_report([str(files)], query, listed))
    assert_equal(found, expected, name)
    assert found["events"]
    assert found["quarantine"]
    assert found["duplicates"]


@pytest.mark.spark
def test_functions_on_files_are_equal_on_both_engines(spark: Any, files: Path) -> None:
    """Every function returns the same rows."""
    rows = split(from_files(spark, [str(files)]).coalesce(2).persist())
    with open_rollups({"path": str(files)}) as found:
        for name, ask in QUESTIONS.items():
            answer, expected = ask(functions, found.rollups), SparkResult(ask(functions, rows))
            assert (answer.columns, answer.types) == (expected.columns, expected.types), name
            assert_equal(answer.rows(), expected.rows(), name)


def many(root: Path, count: int = 4) -> Path:
    """Write files that are large enough for several tasks."""
    dice = random.Random(9)
    lines = [line(dice, number).encode() for number in range(2000)]
    for number in range(count):
        part = b"\n".join(text.replace(b"LG", f"L{number}".encode()) for text in lines)
        (root / f"{number}.jsonl").write_bytes(b"\n".join([part] * 1) + b"\n" + b" \n" * 3_000_000)
    return root


def test_several_processes_read_what_one_reads(tmp_path: Path) -> None:
    """The number of processes does not change the answer."""
    many(tmp_path)
    answers = []
    for workers in (1, 2, 4):
        with open_rollups({"path": str(tmp_path)}, workers=workers) as found:
            answers.append((functions.channels(found.rollups).rows(), functions.quarantine(found.rollups).rows()))
    assert_equal(answers[1], answers[0])
    assert_equal(answers[2], answers[0])
    assert sum(row["events"] for row in answers[0][0]) > 7000


def test_a_process_that_ends_is_an_error_of_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed process ends the report with its signal, and the others end."""
    many(tmp_path, 2)
    kill = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    monkeypatch.setattr(raw_task, "_CHILD", kill)
    with (
        pytest.raises(BalogError, match=r"SIGKILL.*--engine spark") as caught,
        open_rollups({"path": str(tmp_path)}, workers=2),
    ):
        pass
    assert "\n" not in str(caught.value)


def test_an_interrupt_ends_the_processes(tmp_path: Path) -> None:
    """After SIGINT, the command exits with 130 and leaves neither a process nor a folder."""
    many(tmp_path, 12)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    command = [str(Path(sys.executable).with_name("balog")), "report", str(tmp_path), "--no-html", "--engine", "duckdb"]
    with subprocess.Popen(
        command, env={**os.environ, "TMPDIR": str(scratch)}, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        wait_for(lambda: list(scratch.glob("balog-read-*/*")) or process.poll() is not None)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert errors.count("\n") == 1
    assert not list(scratch.glob("balog-read-*"))


@pytest.mark.parametrize("options", [[], ["--where", "channel LIKE 'tap%'"], ["--where", "level = 'ERROR'"]])
def test_auto_reports_files_without_spark(
    root: Path, counted: dict[str, Any], monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    """The command reads files by DuckDB, and its numbers are those of a recount in plain Python."""
    from balog.cli.report import command

    monkeypatch.setattr("balog.cli.shared.spark.SparkPlace.session", None)  # Spark can't start
    run = CliRunner().invoke(command, [str(root), "--no-html", "--json", *options])
    assert run.exit_code == 0, run.output
    found = json.loads(run.stdout)
    channels = dict(counted["channels"])
    if "LIKE" in str(options):
        channels = {key: count for key, count in channels.items() if key[0].startswith("tap")}
    if "ERROR" in str(options):
        channels = {key: count for key, count in channels.items() if key[1] == "ERROR"}
    assert found["events"] == sum(channels.values())
    assert sum(row["lines"] for row in found["quarantine"]) == counted["bad"]


def test_what_duckdb_cannot_do_is_refused(root: Path) -> None:
    """Options that contradict each other end the command with code 2."""
    run = CliRunner().invoke(main, ["report", str(root), "--no-html", "--engine", "duckdb", "--master", "local[2]"])
    assert run.exit_code == 2
    assert "--master needs Spark; leave out --engine duckdb" in run.output


def test_files_beyond_the_limit_are_for_spark(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit, auto starts Spark and says why."""
    from balog.cli.report import command

    def session(*_: Any, **__: Any) -> None:
        raise BalogError("Spark was started")

    monkeypatch.setattr("balog.cli.shared.spark.SparkPlace.session", session)
    monkeypatch.setattr("balog.analytics.reporting.report.MOST_LOCAL", 0)
    run = CliRunner().invoke(command, [str(root), "--no-html"])
    assert isinstance(run.exception, BalogError)
    assert "Spark reads files of more than 5 GB" in run.output
