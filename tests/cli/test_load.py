"""``balog load`` as it is called; what it does with events is tested in ``tests/analytics/tables``."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from balog.cli import main
from balog.event import Event, encode


def load(*words: str) -> Result:
    return CliRunner().invoke(main, ["load", *words])


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ([], "nothing to do; give a SOURCE, --compact or --keep"),
        (["x", "--dry-run"], "--dry-run: it says what --keep would remove"),
        (["x", "--follow", "--plan"], "--follow: give it a SOURCE, and no --plan"),
        (["--follow", "--compact"], "--follow: give it a SOURCE, and no --plan"),
        (["--compact"], "there are no tables; make some"),
        (["x", "--keep", "soon"], "--keep: 'soon' is no length of time"),
        (["x", "--since", "soon"], "--since: 'soon' is no moment"),
        (["x", "--form", "nonsense"], "nonsense"),
        (["nowhere.jsonl"], "nowhere.jsonl: no such file or folder"),
    ],
)
def test_wrong_use_is_one_line_before_spark_starts(
    words: list[str], problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    monkeypatch.setattr("balog.analytics.session", lambda *_, **__: pytest.fail("Spark was started"))
    monkeypatch.chdir(tmp_path)
    done = load("--tables", str(tmp_path / "tables"), *words)
    assert done.exit_code == 2, done.output
    [line] = done.stderr.splitlines()
    assert problem in line


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ("s3://lake/tables", "s3://lake/tables: is no folder; give one"),
        ("icberg:lake.balog", "icberg:lake.balog: is no folder; give one"),
        ("dump.jsonl", "dump.jsonl: is a file; give a folder for the tables"),
    ],
)
def test_where_no_tables_can_be_nothing_is_made(
    place: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    monkeypatch.setattr("balog.analytics.session", lambda *_, **__: pytest.fail("Spark was started"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dump.jsonl").touch()
    done = load("dump.jsonl", "--tables", place)
    assert (done.exit_code, [path.name for path in tmp_path.iterdir()]) == (2, ["dump.jsonl"])
    assert done.stderr.startswith(f"balog load: {problem}")


@pytest.mark.spark
def test_sources_are_listed_once(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from balog.analytics.reading import inputs

    (tmp_path / "a.jsonl").write_bytes(encode(Event.new("a", {"n": 1})) + b"\n")
    monkeypatch.setattr(type(spark), "stop", lambda self: None)
    listings: list[Any] = []
    find = inputs.find
    monkeypatch.setattr(inputs, "find", lambda *asked, **named: listings.append(asked) or find(*asked, **named))
    done = load(str(tmp_path / "a.jsonl"), "--tables", str(tmp_path / "tables"))
    assert done.exit_code == 0, done.output
    assert len(listings) == 1
    assert "events" in done.output
    assert "1 files read" in done.output
