"""A ratio stands beside the last one of the same work on the same kind of machine, and says when it got worse."""

import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from benchmarks import history
from benchmarks.history import show_ratio


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "HISTORY", tmp_path / "history.jsonl")
    monkeypatch.setattr(sys, "argv", ["log.py", "--rounds", "5"])


@pytest.mark.parametrize(
    ("target", "first", "second", "is_marked"),
    [
        ("≥ 0.5", [2.0, 2.1, 1.9], [1.0, 1.1, 0.9], True),
        ("≥ 0.5", [1.0, 1.1, 0.9], [2.0, 2.1, 1.9], False),
        ("≤ 0.5", [1.0, 1.1, 0.9], [2.0, 2.1, 1.9], True),
        ("", [2.0, 1.0, 3.0], [1.9, 1.0, 3.0], False),  # within the spread of the rounds
    ],
)
def test_a_ratio_behind_the_last_by_more_than_the_spread_is_marked(
    target: str, first: list[float], second: list[float], is_marked: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    show_ratio("peer", first, [1.0] * 3, target)
    show_ratio("peer", second, [1.0] * 3, target)

    before, after = capsys.readouterr().out.splitlines()

    assert "last" not in before
    assert f"last {first[0]:.2f}" in after
    assert ("WORSE" in after) == is_marked


def test_other_work_another_machine_and_a_quick_run_are_not_compared(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    show_ratio("peer", [2.0], [1.0])
    monkeypatch.setattr(history, "_machine", lambda: "another")
    show_ratio("peer", [1.0], [1.0])
    monkeypatch.setattr(sys, "argv", ["log.py", "--quick"])
    show_ratio("peer", [1.0], [1.0])
    show_ratio("peer", [1.0], [1.0])

    assert "last" not in capsys.readouterr().out


def test_a_quick_run_in_this_process_leaves_no_ratio() -> None:
    @click.command()
    @click.option("--quick", is_flag=True)
    def benchmark(quick: bool) -> None:
        show_ratio("peer", [1.0], [1.0])

    CliRunner().invoke(benchmark, ["--quick"], catch_exceptions=False)
    assert not history.HISTORY.exists()
    CliRunner().invoke(benchmark, [], catch_exceptions=False)
    assert history.HISTORY.exists()
