"""One run of a report: found by its id, printed, as JSON."""

import json
from datetime import timedelta
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")

from handmade import NOW, failure, report, run

from balog.analytics.reporting import model as m
from balog.analytics.reporting.links import parse_link
from balog.analytics.reporting.model import encode
from balog.analytics.reporting.terminal import find_run, print_run
from balog.common.errors import ConfigError

EVIL = "\x1b[31m[red]gone[/red]"


def with_details(**changes: Any) -> m.Report:
    line = m.ErrorLine(at=NOW, id="LG1", run_id="r1", fingerprint=f"{3:016x}", level="ERROR", channel="tap.log",
                       application="tap", message=f"refused {EVIL}", events=4)  # fmt: skip
    part = m.RunPart(application="tap", first=NOW, last=NOW + timedelta(seconds=9), events=1234, errors=4)
    one = run(1, parts=[part], lines=[line], failures=[f"{3:016x}"], outcome="failed", exit_code=7, problem="no luck",
              ended=NOW + timedelta(seconds=9))  # fmt: skip
    failures = [failure(3, message="refused <n>"), failure(4, message="another")]
    return report(runs=[run(0), one, run(2)], failures=failures, **changes)


def test_a_run_is_printed_with_its_timeline_streams_lines_and_failures(capsys: pytest.CaptureFixture[str]) -> None:
    """Everything about this run, and nothing of others; control sequences have no effect."""
    print_run(find_run(with_details(), "r1", [parse_link("logs=https://x.example/{run_id}")]))
    out = capsys.readouterr().out
    for text in ("run r1", "failed, exit code 7 after 3.5 s", "no luck", "logs: https://x.example/r1", "1,234",
                 "2026-11-20 12:00:09", "users", "refused \N{REPLACEMENT CHARACTER}[31m[red]gone[/red]",
                 "RuntimeError: refused <n>"):  # fmt: skip
        assert text in out
    assert "another" not in out
    assert "\x1b" not in out


def test_a_run_is_one_json_document() -> None:
    """It has the run, its failures and its links by label."""
    found = json.loads(encode(find_run(with_details(), "r1", [parse_link("logs=https://x.example/{run_id}")])))
    assert (found["run"]["run_id"], found["run"]["lines"][0]["events"]) == ("r1", 4)
    assert [one["message"] for one in found["failures"]] == ["refused <n>"]
    assert found["links"] == {"logs": "https://x.example/r1"}


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        ([run(run_id="nightly-2026")], "no run 'nightly-2025'; did you mean 'nightly-2026'?"),
        ([run(run_id="x")], "no run 'nightly-2025'; there are x"),
        ([], "no run 'nightly-2025'; there are no runs in this time"),
    ],
)
def test_an_unknown_run_names_one_that_is_similar(runs: list[m.RunStats], said: str) -> None:
    """One line, with the option's name."""
    with pytest.raises(ConfigError) as refused:
        find_run(report(runs=runs), "nightly-2025")
    assert said in str(refused.value)
    assert "--run" in str(refused.value)
