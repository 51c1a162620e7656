"""Packages add commands to balog by entry points."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.documentation import docs_page
from tests.stand_ins.packages import install as install_package
from tests.stand_ins.programs import run_program

PAGE = docs_page("add-a-command.md").read_text()
COMMAND = PAGE.partition("```python balog_hello.py\n")[2].partition("```")[0]
ENTRY_POINT = PAGE.partition('"balog.commands"]\n')[2].partition("\n")[0].replace('"', "")

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
        folders = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
        return run_program(sys.executable, "-m", "balog", *arguments, check=False, PYTHONPATH=folders)

    return balog


def test_a_package_adds_a_command(install: Install, balog: Balog) -> None:
    install("balog-hello", COMMAND, ENTRY_POINT)

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


def test_the_help_lists_each_name_with_all_its_packages(tmp_path: Path, balog: Balog) -> None:
    install_package(tmp_path, "balog-one", "", "balog.topics", "lines = balog_one:open")
    install_package(tmp_path, "balog-two", "", "balog.topics", "lines = balog_two:open")

    shown = balog("--help").stdout.partition("Plug-ins:")[2]

    assert shown.split() == ["lines", "topic", "backend", "of", "balog-one", "1.2,", "balog-two", "1.2"]


HANDLERS = """
from balog.consumers import consumer_config


@consumer_config("orders")
def ship(settings, event):
    pass
"""

OPENERS = """
def nothing(url):
    return None

def text(url):
    return "a text"

def raising(url):
    raise ZeroDivisionError("no")

def two(url, other):
    return None
"""


@pytest.mark.parametrize(
    ("opener", "reason"),
    [
        ("nothing", "cannot be used: its NoneType has no "),
        ("text", "cannot be used: its str has no "),
        ("raising", "cannot be made: ZeroDivisionError: no"),
        ("two", "cannot be made: TypeError: two() missing 1 required positional argument: 'other'"),
    ],
)
def test_an_opener_that_opens_nothing_is_one_line(tmp_path: Path, balog: Balog, opener: str, reason: str) -> None:
    install_package(tmp_path, "balog-odd", OPENERS, "balog.topics", f"odd = balog_odd:{opener}")
    install_package(tmp_path, "balog-off", OPENERS, "balog.ledgers", f"off = balog_off:{opener}")
    (tmp_path / "shop_handlers.py").write_text(HANDLERS)
    consume = ("consume", "shop_handlers", "--topics", f"local:{tmp_path}", "--until-empty")

    for arguments, where in (
        (("topics", "list", "--topics", "odd:x"), "the topic backend 'odd' of balog-odd 1.2"),
        ((*consume, "--ledger", "off:x"), "the ledger 'off' of balog-off 1.2"),
    ):
        done = balog(*arguments)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)
        assert f"{where} {reason}" in done.stderr


def test_a_factory_of_no_hook_is_one_line(tmp_path: Path, balog: Balog) -> None:
    install_package(
        tmp_path, "balog-own", "def nothing():\n    return None\n", "balog.hooks", "own = balog_own:nothing"
    )

    (tmp_path / "shop_handlers.py").write_text(HANDLERS)
    done = balog("consume", "shop_handlers", "--topics", f"local:{tmp_path}", "--until-empty", "--hook", "own")

    assert (done.returncode, done.stderr) == (
        1,
        "balog consume: the consumer hook 'own' of balog-own 1.2 cannot be used:"
        " its NoneType has no method of a hook\n",
    )


def test_an_import_that_exits_is_one_line(install: Install, balog: Balog) -> None:
    install("balog-broken", "raise SystemExit('leaving')", "broken = balog_broken:command")

    assert "package balog-broken 1.2, cannot be imported: SystemExit: leaving" in balog("broken").stderr


SINK = """
from balog.sinks import SinkOptions


class Odd(SinkOptions, tag_field="type", tag="odd", forbid_unknown_fields=True, kw_only=True):
    how: str

    @property
    def name(self):
        return "odd"

    def build(self):
        return {"none": None, "close": self}[self.how]

    def open(self):
        raise RuntimeError("open")

    def write(self, batch):
        pass

    def close(self):
        raise RuntimeError("close")
"""


@pytest.mark.parametrize(
    ("how", "code", "shown"),
    [
        ("none", 2, "$.sinks[0]: the sink cannot be used: its NoneType has no open()"),
        ("raise", 2, "$.sinks[0]: the sink cannot be built: KeyError: 'raise'"),
        ("close", 1, "odd: RuntimeError: open"),
    ],
)
def test_a_wrong_sink_is_found_by_the_check(tmp_path: Path, balog: Balog, how: str, code: int, shown: str) -> None:
    install_package(tmp_path, "balog-odd", SINK, "balog.sinks", "odd = balog_odd:Odd")
    config = tmp_path / "broker.json"
    config.write_text(json.dumps({"sinks": [{"type": "odd", "how": how}]}))

    done = balog("check", str(config), "--connect")

    assert shown in done.stdout + done.stderr
    assert done.returncode == code
    assert "Traceback" not in done.stderr
