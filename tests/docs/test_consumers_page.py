"""The page on consumers: its blocks run as they are written, in order, in one folder."""

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from balog.consumers import Consumer, ConsumerHub
from balog.consumers.metrics_hook import MetricsHook
from tests.documentation import docs_page

PAGE = docs_page("consumers.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```(?P<language>\w+)(?: (?P<name>\S+))?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What each ``sh`` block printed; blocks of Python are files."""
    folder = tmp_path_factory.mktemp("page")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("BALOG_")}
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])
    found = []
    for block in FENCE.finditer(PAGE):
        if block["name"]:
            (folder / block["name"]).write_text(block["text"], encoding="utf-8")
            continue
        assert block["language"] == "sh"
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", block["text"]],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, f"{block['text']}\n{done.stdout}\n{done.stderr}"
        found.append(done.stdout)
    return found


def test_the_handlers_do_what_they_say(printed: list[str]) -> None:
    # Threads print between each other's words and line ends.
    assert re.findall(r"bill ann \d+", printed[0]) == ["bill ann 5", "bill ann 20", "bill ann 30"]
    assert "count 2" in printed[0]
    assert "page shop" in printed[0]


def test_a_sink_in_a_handler_has_what_was_sent(printed: list[str]) -> None:
    assert printed[3].split() == ["2"]  # orders of more than 10 among the four


def test_what_listens_to_what_is_listed(printed: list[str]) -> None:
    listed = [line.split() for line in printed[0].splitlines() if line.startswith("shop.")]
    assert [words[:2] for words in listed] == [
        ["shop.bill", "orders"],
        ["shop.count", "orders"],
        ["shop.page", "orders"],
    ]


def test_nothing_is_left_for_a_second_run(printed: list[str]) -> None:
    assert printed[1] == ""


def test_hooks_see_every_call(printed: list[str]) -> None:
    assert "captured Reject of shop.bill" in printed[2]
    assert len(re.findall(r'"name": "shop\.bill"', printed[2])) == 4
    assert '"status_code": "ERROR"' in printed[2]
    assert "EngineStats(received=5, succeeded=4, failed=1, dead=1" in printed[2]


def test_every_argument_of_a_consumer_is_on_the_page() -> None:
    arguments = set(inspect.signature(Consumer).parameters) - {"func"}
    rows = "\n".join(line for line in PAGE.splitlines() if line.startswith("| `"))
    assert {name for name in arguments if f"`{name}" not in rows} == set()


def test_every_metric_is_on_the_page(tmp_path: Path) -> None:
    from balog.consumers import Engine
    from balog.topics.local import LocalTopics

    hub = ConsumerHub()
    hub.add(Consumer(print, "t", name="n"))
    hook = MetricsHook()
    hook.started(Engine(hub, LocalTopics(tmp_path)))
    names = {family.name.removeprefix("balog_") for family in hook.collect()}
    named = set()
    for row in re.findall(r"^\| (`balog_.*?) \|", PAGE, re.MULTILINE):
        component = row.removeprefix("`balog_").partition("_")[0]
        named |= {f"{component}_{name}" for name in re.findall(r"(?:balog_[a-z]+|…)_(\w+?)(?:_total)?`", row)}
    assert names == {name for name in named if not name.startswith("sink_")}  # of forwarders only
