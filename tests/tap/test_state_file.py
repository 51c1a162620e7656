"""``--out-file``: a state is in its file before its message goes out."""

import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from balog.tap import Tap

SCHEMA = {"type": "object", "properties": {"id": {"type": "integer"}}}


@pytest.fixture
def seen() -> list[Any]:
    return []


@pytest.fixture
def tap(tmp_path: Path, seen: list[Any]) -> Tap:
    """Three records; the file is looked at before each is given."""
    made = Tap("tap-filed")

    @made.stream("contacts", replication_key="id", schema=SCHEMA, bookmark_strategy=made.every_n(1))
    def contacts() -> Iterator[dict[str, Any]]:
        for number in range(1, 4):
            seen.append(json.loads((tmp_path / "state.json").read_bytes()))
            yield {"id": number}

    return made


def run(tap: Tap, file: Path) -> int | str | None:
    with pytest.raises(SystemExit) as ended:
        tap.run(["--out-file", str(file)])
    return ended.value.code


def states(capfd: pytest.CaptureFixture[str]) -> list[Any]:
    messages = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    return [message["value"] for message in messages if message["type"] == "STATE"]


def test_the_file_has_each_state(tap: Tap, tmp_path: Path, seen: list[Any], capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "state.json"
    assert run(tap, file) in (0, None)
    said = states(capfd)
    assert seen == said[:3]
    assert json.loads(file.read_bytes()) == said[-1] == {"bookmarks": {"contacts": {"id": 3}}}
    assert [path.name for path in tmp_path.iterdir()] == ["state.json"]


def test_it_can_be_given_to_the_next_run(tap: Tap, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "state.json"
    run(tap, file)
    states(capfd)
    with pytest.raises(SystemExit):
        tap.run(["--state", str(file), "--out-file", str(file)])
    assert states(capfd)[0]["bookmarks"] == {"contacts": {"id": 3}}


def test_a_full_disk_is_said_in_a_line_and_the_state_before_stays(
    tap: Tap, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    file = tmp_path / "state.json"
    file.write_text("{}")
    monkeypatch.setattr(os, "fsync", full)
    assert run(tap, file) == 1
    out, err = capfd.readouterr()
    assert "STATE" not in out
    assert "state.json: No space left on device" in err
    assert file.read_text() == "{}"
    assert [path.name for path in tmp_path.iterdir()] == ["state.json"]
