"""An empty path is an error of every command: it would be the working folder."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from balog.cli import main
from balog.cli.shared.spark import SparkPlace
from balog.common.errors import BalogError

COMMANDS = [
    ["report", ""],
    ["report", "a.jsonl", ""],
    ["report", "a.jsonl", "--html", ""],
    ["load", "", "--tables", "tables"],
    ["load", "a.jsonl", "--tables", ""],
    ["query", "SELECT 1", "--tables", ""],
    ["query", "SELECT 1", "--source", ""],
    ["query", "SELECT 1", "--source", "a.jsonl", "--output", ""],
    ["check", ""],
    ["test", ""],
    ["replay", ""],
    ["serve", "--config", ""],
    ["config", "push", ""],
]


@pytest.mark.spark
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_an_empty_path_is_refused_and_nothing_is_read(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.jsonl").write_text("{}\n")
    run = CliRunner().invoke(main, words)
    assert run.exit_code == 2, run.output
    assert "empty" in run.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


@pytest.mark.parametrize("error", [ConnectionRefusedError(111, "refused"), ConnectionResetError(104, "reset")])
def test_a_java_that_ended_is_one_line(error: OSError, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed")

    class Dead:
        def stop(self) -> None:
            raise error

    monkeypatch.setattr("balog.analytics.session", lambda *words, **settings: Dead())
    with pytest.raises(BalogError, match=r"^Spark: Java ended, perhaps because it needed more memory") as failed:
        with SparkPlace(None, None).session("x"):
            raise error
    assert "\n" not in str(failed.value)
