"""Packages add sinks to balog by entry points."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.stand_ins.packages import PLUGINS
from tests.stand_ins.packages import install as install_package

SINK = (PLUGINS / "balog-slack" / "balog_slack.py").read_text()

Install = Callable[..., None]
Balog = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture
def install(tmp_path: Path) -> Install:
    """Install a package with one module and one entry point into a folder of its own."""

    def install(module: str, code: str, entry_point: str) -> None:
        install_package(tmp_path, module, code, "balog.sinks", entry_point)

    return install


@pytest.fixture
def balog(tmp_path: Path) -> Balog:
    def balog(*arguments: str) -> "subprocess.CompletedProcess[bytes]":
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
        command = [sys.executable, "-m", "balog", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, timeout=60)

    return balog


@pytest.fixture
def config(tmp_path: Path) -> str:
    file = tmp_path / "broker.json"
    file.write_text(json.dumps({"sinks": [{"type": "slack", "webhook": {"env": "SLACK_WEBHOOK"}}]}))
    return str(file)


def test_without_the_package_the_type_is_unknown(balog: Balog, config: str) -> None:
    done = balog("check", config)

    assert done.returncode == 2
    assert b"slack" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import nothing_there", "cannot be imported: ModuleNotFoundError"),
        ("SlackSinkConfig = 1", "is not a SinkOptions with build()"),
        (SINK.replace('tag="slack"', 'tag="other"'), 'must have tag_field="type" and tag="slack"'),
    ],
)
def test_a_plug_in_that_is_no_sink_is_one_line_for_the_configs_that_name_it(
    install: Install, balog: Balog, config: str, tmp_path: Path, code: str, reason: str
) -> None:
    install("balog_slack", code, "slack = balog_slack:SlackSinkConfig")
    file = tmp_path / "store.json"
    file.write_text(json.dumps({"sinks": [{"type": "store", "path": str(tmp_path / "archive"), "topic": "t"}]}))

    refused = balog("check", config)
    done = balog("check", str(file))

    assert refused.returncode == 2
    (line,) = [line for line in refused.stderr.decode().splitlines() if "$.sinks[0]" in line]
    assert reason in line
    assert "balog_slack 1.2" in line
    assert done.returncode == 0, done.stderr
    assert b"slack" not in done.stderr


def test_a_config_imports_only_the_sinks_that_it_names(tmp_path: Path) -> None:
    file = tmp_path / "broker.json"
    file.write_text(json.dumps({"sinks": [{"type": "statsd"}]}))
    program = (
        "import sys; from balog.common.config import load; from balog.broker.config import BrokerConfig;"
        f"load({str(file)!r}, BrokerConfig).sinks[0].build();"
        "from balog.sinks.base import SINKS;"
        "print([place for place in SINKS.builtin.values() if place.partition(':')[0] in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)

    assert (done.stdout, done.stderr) == ("['balog.sinks.statsd:StatsdSinkConfig']\n", "")
