"""The packages under ``plugins/`` that add sinks, installed together into an environment of their own."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.example_package import python_with
from tests.stand_ins.packages import PLUGINS

SINKS = [
    {"type": "alertmanager", "url": "http://localhost:9093"},
    {"type": "clickhouse"},
    {"type": "otlp"},
    {"type": "slack", "webhook": {"env": "WEBHOOK"}},
    {"type": "teams", "webhook": {"env": "WEBHOOK"}},
    {"type": "ytsaurus", "proxy": "yt", "path": "//home/x", "token": {"env": "WEBHOOK"}},
]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the packages, and with the packages of this one."""
    return python_with(tmp_path_factory.mktemp("plugins"), *(PLUGINS / f"balog-{sink['type']}" for sink in SINKS))


def balog(python: Path, folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "WEBHOOK": "https://example.com/hook"}
    command = [python, "-m", "balog", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)


def test_help_and_check_know_the_sinks(python: Path, tmp_path: Path) -> None:
    (tmp_path / "broker.json").write_text(json.dumps({"sinks": SINKS}))
    (tmp_path / "wrong.json").write_text(json.dumps({"sinks": [{"type": "slak"}]}))

    shown = balog(python, tmp_path, "--help").stdout
    checked = balog(python, tmp_path, "check", "broker.json")

    assert [sink["type"] for sink in SINKS if f"sink of balog-{sink['type']} 0.1.0" not in shown] == []
    assert checked.returncode == 0, checked.stderr
    assert "did you mean 'slack'?" in balog(python, tmp_path, "check", "wrong.json").stderr


def test_a_preview_shows_the_cards_of_teams(python: Path, tmp_path: Path) -> None:
    (tmp_path / "sinks.json").write_text(json.dumps({"sinks": [SINKS[4]]}))

    done = balog(python, tmp_path, "watch", "preview", "--sinks", "sinks.json")

    assert (done.returncode, done.stderr) == (0, "")
    assert "AdaptiveCard" in done.stdout
