"""``balog watch``: files once, topics until stopped, and after a kill."""

import json
import os
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from balog.cli import main
from balog.event import decode, encode
from balog.topics import Message, open_topics
from tests.watch.events import at, run

MONITORS = """
monitors:
  - name: late
    freshness: {every: 1h}
  - name: thin
    volume: {}
"""


def write(tmp_path: Path, text: str = MONITORS) -> str:
    (tmp_path / "monitors.yaml").write_text(text)
    return str(tmp_path / "monitors.yaml")


def call(*words: str) -> Any:
    return CliRunner().invoke(main, ["watch", *words])


def alerts(text: str) -> list[tuple[str, str]]:
    found = [json.loads(line)["payload"] for line in text.splitlines() if line.startswith("{")]
    return [(alert["monitor"], alert["state"]) for alert in found]


def test_files_are_evaluated_once_by_their_own_clock(tmp_path: Path) -> None:
    events = [run(hour / 2, streams={"orders": 100}) for hour in range(6)] + [run(5, streams={"orders": 3})]
    (tmp_path / "b.jsonl").write_bytes(b"".join(encode(one) + b"\n" for one in reversed(events[3:])) + b"no event\n")
    (tmp_path / "a.jsonl").write_bytes(b"".join(encode(one) + b"\n" for one in events[:4]))
    done = call(
        write(tmp_path), "--source", str(tmp_path / "b.jsonl"), "--source", str(tmp_path / "a.jsonl"),
        "--until", "2026-11-23T11:30:00Z",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert alerts(done.stdout) == [("thin", "ok"), ("late", "firing"), ("late", "resolved"), ("thin", "firing")]
    assert "left out 1 line without an event" in done.stderr
    event = decode(done.stdout.splitlines()[1].encode())
    assert (event.header.channel, event.level) == ("balog.alert", "ERROR")
    assert event.header.timestamp == datetime(2026, 11, 23, 9, 30, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ((), "nothing to watch"),
        (("--topics", "local:t"), "nothing to watch"),
        (("--topics", "local:t", "--topic", "x", "--source", "f"), "exclude each other"),
        (("--topics", "local:t", "--topic", "x", "--until", "2026-01-01"), "--until belongs to --source"),
        (("--source", "missing.jsonl"), "cannot be read"),
        *(
            (("--source", "f", *words), f"{words[0]} belongs to --topics")
            for words in (
                ("--sinks", "s.yaml"),
                ("--state", "x"),
                ("--group", "g"),
                ("--until-empty",),
                ("--lease", "30"),
                ("--listen", "127.0.0.1:0"),
            )
        ),
    ],
)
def test_wrong_use_is_one_line(tmp_path: Path, words: tuple[str, ...], reason: str) -> None:
    done = call(write(tmp_path), *words)
    assert (done.exit_code, reason in done.stderr) == (2, True)


def test_events_of_the_future_move_the_clock_of_files_and_are_reported(tmp_path: Path) -> None:
    ahead = (datetime.now(timezone.utc) - at(0)).total_seconds() / 3600 + 24
    (tmp_path / "e.jsonl").write_bytes(b"".join(encode(run(hours)) + b"\n" for hours in (0, ahead)))
    done = call(write(tmp_path), "--source", str(tmp_path / "e.jsonl"))
    assert "1 event from the future" in done.stderr
    assert alerts(done.stdout) == [("late", "firing"), ("late", "resolved")]
    assert (
        "of the future"
        not in call(write(tmp_path), "--source", str(tmp_path / "e.jsonl"), "--until", "9000-01-01").stderr
    )


def test_a_wrong_file_gives_all_mistakes_with_their_lines(tmp_path: Path) -> None:
    done = call(write(tmp_path, MONITORS.replace("1h", "1x").replace("{}", "{minruns: 3}")), "--source", "f")
    assert done.exit_code == 2
    assert "monitors.yaml:4:17: $.monitors[0].freshness.every" in done.stderr
    assert "monitors.yaml:6:14: $.monitors[1].volume" in done.stderr


def test_a_closed_stdout_ends_it_and_the_alerts_come_with_the_next_start(tmp_path: Path) -> None:
    url = f"local:{tmp_path}/topics"
    with open_topics(url) as topics:
        made = [run(hour) for hour in (0, 3, 6)]
        topics.topic("events").publish([Message(one.header.id, encode(one)) for one in made])
    command = [
        sys.executable, "-m", "balog", "watch", write(tmp_path), "--topics", url, "--topic", "events",
        "--state", str(tmp_path / "w.sqlite"),
    ]  # fmt: skip
    reading, writing = os.pipe()
    os.close(reading)
    with subprocess.Popen(command, stdout=writing, stderr=subprocess.PIPE, text=True) as first:
        os.close(writing)
        _, said = first.communicate()
    assert first.returncode == 1
    assert "standard output was closed" in said
    again = subprocess.run([*command, "--until-empty"], capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    late = [state for name, state in alerts(again.stdout) if name == "late"]
    assert late[:4] == ["firing", "resolved", "firing", "resolved"]


def test_a_backtest_of_files_ends_with_their_last_event_and_writes_a_page(tmp_path: Path) -> None:
    pytest.importorskip("jinja2", reason="jinja2 is not installed")
    pytest.importorskip("vl_convert", reason="vl-convert-python is not installed")
    events = [run(hour, streams={"orders": 100 if hour != 8 else 0}) for hour in (*range(6), 8, 8, 9)]
    (tmp_path / "a.jsonl").write_bytes(b"".join(encode(one) + b"\n" for one in events))
    page = tmp_path / "page.html"
    done = call(
        write(tmp_path), "--source", str(tmp_path / "a.jsonl"), "--backtest", "1d", "--html", str(page), "--json"
    )
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert [(one["monitor"], one["seconds"], one["state"]) for one in found["firings"]] == [
        ("late", 2 * 3600, "resolved"),
        ("thin", 3600, "resolved"),
    ]
    assert datetime.fromisoformat(found["until"].replace("Z", "+00:00")) - at(9) == timedelta(microseconds=1)
    assert "a.jsonl" in page.read_text("utf-8")
    assert page.read_text("utf-8").endswith("</html>")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--source", "a.jsonl", "--tables", "t"), "--tables and --engine exclude --source"),
        (("--source", "a.jsonl", "--html", "gone/page.html"), "its folder does not exist"),
    ],
)
def test_wrong_use_of_a_backtest_is_one_line(tmp_path: Path, words: tuple[str, ...], reason: str) -> None:
    done = call(write(tmp_path), "--backtest", "1d", *words)
    assert done.exit_code == 2
    assert reason in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_backtest_reports_a_monitor_that_no_event_belongs_to(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"".join(encode(run(hour)) + b"\n" for hour in range(3)))
    monitors = "monitors:\n  - {name: mistyped, pipeline: tap-shpo, volume: {}}\n"
    done = call(write(tmp_path, monitors), "--source", str(tmp_path / "a.jsonl"), "--backtest", "1d")
    assert done.exit_code == 0
    assert "balog watch: mistyped: no event belongs to it; check pipeline, stream, where" in done.stderr
