"""``balog load`` as it is called; what it does with events is tested in ``tests/analytics/tables``."""

import io
import json
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from balog.cli import main
from balog.cli.load import command as load_command
from balog.common.errors import BalogError
from balog.event import Event, encode
from balog.topics import Message, open_topics


@pytest.fixture
def no_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if Spark is started; the test runs in a folder of its own."""
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    monkeypatch.setattr("balog.analytics.session", lambda *_, **__: pytest.fail("Spark was started"))
    monkeypatch.chdir(tmp_path)


def load(*words: str) -> Result:
    return CliRunner().invoke(main, ["load", *words])


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ([], "nothing to do; give a SOURCE, --compact or --keep"),
        (["x", "--follow", "--plan"], "--follow: needs a SOURCE, and no --plan"),
        (["--follow", "--compact"], "--follow: needs a SOURCE, and no --plan"),
        (["--compact"], "there are no tables; make some"),
        (["x", "--keep", "soon"], "--keep: 'soon' is not a duration"),
        (["nowhere.jsonl"], "nowhere.jsonl: no such file or folder"),
        (["x", "--tables", "delta:s3://bucket/tables"], "location has to be a folder on a disk"),
    ],
)
@pytest.mark.usefixtures("no_spark")
def test_wrong_use_is_one_line_before_spark_starts(words: list[str], problem: str) -> None:
    done = load("--tables", "tables", *words)
    assert done.exit_code == 2, done.output
    [line] = done.stderr.splitlines()
    assert problem in line


@pytest.mark.usefixtures("no_spark")
def test_a_spark_that_cannot_follow_is_one_line_before_it_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("balog.analytics.reading.streaming.planner.find_spec", lambda name: None)
    done = load(".", "--tables", "tables", "--follow")
    assert (done.exit_code, len(done.stderr.splitlines())) == (2, 1)
    assert "a stream needs Spark 4.2 or newer" in done.stderr


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["x"], "give --tables PLACE"),
        (["x", "--table", "history"], "--table: selects a table of a document"),
        (["--document", "d.json", "--table", "history"], "its sources are topics; give their backend, --topics URL"),
        (["x", "--document", "d.json", "--topics", "local:t"], "leave SOURCE and --tables out"),
        (["--document", "d.json", "--topics", "local:t"], "d.json: $.tables: give --table NAME; there are history"),
        (["--document", "d.json", "--topics", "local:t", "--table", "click"], "no table 'click' that is loaded"),
    ],
)
@pytest.mark.usefixtures("no_spark")
def test_a_document_s_table_is_asked_for_in_full(words: list[str], problem: str) -> None:
    click = {"type": "clickhouse", "name": "click", "sources": ["orders"], "url": "http://localhost:8123"}
    history = {"type": "load", "name": "history", "sources": ["orders"], "to": "tables"}
    Path("d.json").write_text(json.dumps({"tables": [click, history]}))
    done = load(*words)
    assert done.exit_code != 0, done.output
    [line] = done.stderr.splitlines()
    assert problem in line


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ("s3://lake/tables", "s3://lake/tables: is not a folder; give one"),
        ("icberg:lake.balog", "icberg:lake.balog: is not a folder; give one"),
        ("dump.jsonl", "dump.jsonl: is a file; give a folder for the tables"),
        ("", "--tables: the tables' place is empty; give a folder"),
    ],
)
@pytest.mark.usefixtures("no_spark")
def test_where_no_tables_can_be_nothing_is_made(place: str, problem: str, tmp_path: Path) -> None:
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
    find_files = inputs.find_files
    monkeypatch.setattr(
        inputs, "find_files", lambda *asked, **named: listings.append(asked) or find_files(*asked, **named)
    )
    done = load(str(tmp_path / "a.jsonl"), "--tables", str(tmp_path / "tables"))
    assert done.exit_code == 0, done.output
    assert len(listings) == 1
    assert "events" in done.output
    assert "1 file read in" in done.output


@pytest.mark.spark
def test_a_document_says_what_is_loaded(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(spark), "stop", lambda self: None)
    with open_topics(f"local:{tmp_path}/topics") as home:
        for topic in ("orders", "returns"):
            event = Event.new("a", {"n": 1})
            home.topic(topic).publish([Message(event.header.id, encode(event))])
        sources = ["orders", "refunds", "returns"]
        table = {"type": "load", "name": "x", "sources": sources, "to": str(tmp_path / "tables")}
        (tmp_path / "d.json").write_text(json.dumps({"tables": [table]}))
        done = load("--document", str(tmp_path / "d.json"), "--table", "x", "--topics", home.url)
    assert done.exit_code == 0, done.output
    assert "2 rows" in done.output
    assert "balog load: no events yet in refunds" in done.output
    assert (tmp_path / "tables" / "events").is_dir()


@pytest.mark.parametrize(
    ("words", "server", "waiting"),
    [
        ([], "", "Starting Java and Spark, which takes some seconds"),
        (["--master", "local[2]"], "sc://h:1", "Starting Java and Spark at local[2], which takes some seconds"),
        (["--remote", "sc://h:1"], "", "Connecting to the Spark Connect server"),
        ([], "sc://h:1", "Connecting to the Spark Connect server"),
    ],
)
def test_a_terminal_shows_what_the_command_waits_for_while_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], server: str, waiting: str
) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    screen = io.StringIO()
    monkeypatch.setattr(
        "rich.console.Console", partial(Console, file=screen, force_terminal=True, width=120, color_system=None)
    )
    monkeypatch.setenv("SPARK_REMOTE", server) if server else monkeypatch.delenv("SPARK_REMOTE", raising=False)

    def start(*given: Any, **settings: Any) -> Any:
        time.sleep(0.3)  # a display is drawn ten times a second
        raise BalogError("no session")

    monkeypatch.setattr("balog.analytics.session", start)
    (tmp_path / "a.jsonl").write_text("{}\n")
    given = [str(tmp_path / "a.jsonl"), "--tables", str(tmp_path / "tables"), *words]
    done = CliRunner().invoke(load_command, given)
    assert str(done.exception) == "no session"
    assert waiting in screen.getvalue()
