"""Packages add commands to balog by entry points."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.stand_ins.packages import install as install_package

PAGE = (Path(__file__).parents[1] / "docs" / "plugins.md").read_text()
COMMAND = PAGE.partition("```python\n")[2].partition("```")[0]

Install = Callable[..., None]
Balog = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def install(tmp_path: Path) -> Install:
    """Install a package with one module and entry points into a folder of its own."""

    def install(name: str, code: str, *entry_points: str) -> None:
        install_package(tmp_path, name, code, "balog.commands", *entry_points)

    return install


@pytest.fixture
def balog(tmp_path: Path) -> Balog:
    def balog(*arguments: str) -> "subprocess.CompletedProcess[str]":
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
        command = [sys.executable, "-m", "balog", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)

    return balog


def test_a_package_adds_a_command(install: Install, balog: Balog) -> None:
    install("balog-hello", COMMAND, "hello = balog_hello:hello")

    assert balog("hello", "--name", "world").stdout == "hello world\n"
    shown = balog("--help").stdout
    assert "Plug-ins:" in shown
    assert shown.rstrip().endswith("balog-hello 1.2")
    assert "did you mean 'hello'?" in balog("helo").stderr.lower()


def test_a_built_in_command_wins(install: Install, balog: Balog) -> None:
    install("balog-hello", COMMAND, "check = balog_hello:hello")

    assert "Find every error in a config" in balog("check", "--help").stdout
    assert "Plug-ins:" not in balog("--help").stdout


def test_a_plug_in_that_cannot_be_imported_fails_only_its_own_command(install: Install, balog: Balog) -> None:
    install("balog-broken", "raise RuntimeError('no such library')", "broken = balog_broken:command")

    done = balog("broken")
    assert done.returncode == 1
    assert done.stderr == (
        "balog: plug-in 'broken' of balog.commands, package balog-broken 1.2, cannot be imported: "
        "RuntimeError: no such library\n"
    )
    assert balog("--help").returncode == 0


def test_what_is_not_a_click_command_is_one_line(install: Install, balog: Balog) -> None:
    install("balog-hello", "hello = 3", "hello = balog_hello:hello")

    done = balog("hello")
    assert (done.returncode, done.stderr) == (1, "balog: plug-in 'hello' of balog.commands is not a click command\n")


def test_one_name_in_two_packages_is_one_line(install: Install, balog: Balog) -> None:
    install("balog-hello", COMMAND, "hello = balog_hello:hello")
    install("balog-hi", COMMAND, "hello = balog_hi:hello")

    done = balog("hello")
    assert done.returncode == 1
    assert done.stderr == (
        "balog: plug-in 'hello' of balog.commands is in several packages: balog-hello 1.2, balog-hi 1.2; "
        "uninstall all but one\n"
    )
