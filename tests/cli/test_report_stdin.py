"""``balog report -`` reports what other programs write into the pipe."""

import errno
import json
import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from balog.cli import main
from balog.event import Event, encode

pytest.importorskip("datasketches", reason="the extra embedded is not installed")


def line(channel: str) -> str:
    return encode(Event.new(channel, {"cls_type": "order"})).decode() + "\n"


def reported(written: str, *more: str) -> dict:
    result = CliRunner().invoke(main, ["report", "-", *more, "--no-html", "--json"], input=written)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_events_and_invalid_lines_of_stdin_are_counted() -> None:
    numbers = reported(line("shop.a") + '{"header": 1}\n' + line("shop.b"))
    assert (numbers["events"], numbers["quarantined"]) == (2, 1)
    assert {row["channel"] for row in numbers["channels"]} == {"shop.a", "shop.b"}


def test_stdin_is_combined_with_files(tmp_path: Path) -> None:
    path = tmp_path / "more.jsonl"
    path.write_text(line("shop.c"))
    assert reported(line("shop.a"), str(path))["events"] == 2


def test_nothing_on_stdin_is_no_events() -> None:
    assert reported("")["events"] == 0


def test_the_copy_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    reported(line("shop.a"))
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("shutil.copyfileobj", full)
    result = CliRunner().invoke(main, ["report", "-", "--no-html"], input="{}\n")
    assert result.exit_code == 2
    assert "No space left on device; write it to a file first" in result.stderr
