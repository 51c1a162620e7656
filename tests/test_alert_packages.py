"""The examples balog-slack and balog-teams, each installed into an environment of its own."""

import importlib.util
import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.example_package import python_with

EXAMPLES = Path(__file__).parents[1] / "examples"
EXAMPLE = EXAMPLES / "balog-slack"
TEAMS = EXAMPLES / "balog-teams"
LOG = '{"type": "LOG", "level": "ERROR", "value": {"message": "no rows"}}\n'

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the example, and with the packages of this one."""
    return python_with(EXAMPLE, tmp_path_factory.mktemp("slack"))


@pytest.fixture
def run(python: Path, tmp_path: Path) -> Run:
    def run(*arguments: str, feed: str = "", **environment: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [python, "-m", *arguments],
            cwd=tmp_path,
            env={**os.environ, **environment},
            input=feed,
            capture_output=True,
            text=True,
            timeout=120,
        )

    return run


def test_the_sink_keeps_the_contract(run: Run) -> None:
    done = run("pytest", "-p", "no:cacheprovider", str(EXAMPLE / "tests"), "--rootdir", str(EXAMPLE))
    assert done.returncode == 0, done.stdout
    assert re.search(r"\b3\d passed", done.stdout), done.stdout


def test_help_and_check_know_the_sink(run: Run, tmp_path: Path) -> None:
    config = tmp_path / "broker.json"
    config.write_text('{"sinks": [{"type": "slak", "webhook": {"env": "SLACK_WEBHOOK"}}]}')

    assert "sink of balog-slack 0.1.0" in run("balog", "--help").stdout
    assert "slack(balog-slack0.1.0)" in "".join(run("balog", "check", "--help").stdout.split())  # its lines are wrapped
    assert "did you mean 'slack'?" in run("balog", "check", str(config)).stderr


def test_a_broker_posts_to_the_channel(run: Run, tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("slack_server", EXAMPLE / "tests" / "slack_server.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    slack = module.SlackServer()
    config = tmp_path / "broker.json"
    config.write_text(json.dumps({"sinks": [{"type": "slack", "webhook": {"env": "SLACK_WEBHOOK"}}]}))
    try:
        done = run("balog", "broker", "--config", str(config), feed=LOG, SLACK_WEBHOOK=slack.url + "key")
    finally:
        slack.stop()

    assert (done.returncode, done.stdout) == (0, LOG)
    assert [text.rpartition(": ")[2] for text in slack.texts] == ["no rows"]


def test_the_sink_for_teams_keeps_the_contract_and_shows_its_cards(tmp_path: Path) -> None:
    python = python_with(TEAMS, tmp_path)
    suite = [python, "-m", "pytest", "-p", "no:cacheprovider", str(TEAMS / "tests"), "--rootdir", str(TEAMS)]
    done = subprocess.run(suite, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout
    assert re.search(r"\b2\d passed", done.stdout), done.stdout
    (tmp_path / "sinks.json").write_text(json.dumps({"sinks": [{"type": "teams", "webhook": {"env": "NOT_SET"}}]}))
    preview = [python, "-m", "balog", "watch", "preview", "--sinks", "sinks.json"]
    done = subprocess.run(preview, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert "AdaptiveCard" in done.stdout
