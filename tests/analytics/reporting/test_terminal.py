import re

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")

from handmade import failure, report, run

from balog.analytics.reporting.page import make_page
from balog.analytics.reporting.terminal import MOST_ROWS_PRINTED, print_tables


def test_each_list_is_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    print_tables(report())
    shown = capsys.readouterr().out
    assert shown.startswith("12 events, 2 errors, 3 bad lines; files read: 2\n")
    for title in ("Health", "Failures", "Runs", "Slowest streams", "HTTP requests", "Metrics", "Waiting side",
                  "Channels", "Bad lines"):  # fmt: skip
        assert f"\n{title}" in shown
    assert "• New: HTTP <n>, 6 times, since 2026-11-20 12:00" in shown
    assert "4.0 × 10 before" in shown


def test_long_lists_end_and_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    many = [run(n, run_id=f"run{n:03d}") for n in range(50)]
    print_tables(report(runs=many, totals={"runs": 1250, "failures": 1}))
    shown = capsys.readouterr().out
    assert f"Runs, the latest {MOST_ROWS_PRINTED} of 1,250" in shown
    assert shown.count("run0") == MOST_ROWS_PRINTED


def test_texts_are_shown_and_never_obeyed(capsys: pytest.CaptureFixture[str]) -> None:
    print_tables(report(failures=[failure(message="[red]x\x1b[31m")], conditions=["[bold]where"]))
    shown = capsys.readouterr().out
    assert "[red]x\N{REPLACEMENT CHARACTER}[31m" in shown
    assert "[bold]where" in shown
    assert "\x1b" not in shown


def test_a_narrow_terminal_gets_the_columns_that_matter_a_line_each(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    one = run(1, run_id="906bfdc17aeff54e", applications=["target-bigquery"])
    print_tables(report(runs=[one]))
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in capsys.readouterr().out.splitlines()]
    assert max(map(len, lines)) <= 80
    (shown,) = [line for line in lines if "906bfdc17aeff54e" in line]
    assert shown.split()[1] == "target-bigquery"
    assert "succeeded" in shown


def test_an_error_type_that_begins_the_message_is_shown_once(capsys: pytest.CaptureFixture[str]) -> None:
    uncaught = failure(1, error_type="ValueError", message="ValueError: could not convert <value>")
    logged = failure(2, error_type="KeyError", message="Order <n> failed")
    print_tables(report(failures=[uncaught, logged]))
    printed = capsys.readouterr().out
    assert "ValueError: ValueError" not in printed
    assert "ValueError: could not convert <value>" in printed
    assert "KeyError: Order <n> failed" in printed
    page = make_page(report(failures=[uncaught, logged]))
    assert "<code>ValueError</code>" not in page
    assert "<code>KeyError</code> Order &lt;n&gt; failed" in page
