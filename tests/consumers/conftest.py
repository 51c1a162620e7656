"""Packages of handlers, made for a test and forgotten after it."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from click.testing import CliRunner

from balog.cli import main
from balog.consumers import Consumer, ConsumerHub, Engine, EngineStats
from balog.consumers.ledgers.factory import MemoryLedger
from balog.event import Event, encode
from balog.log import configuration
from balog.topics import DeadLetter, Message, Topic
from balog.topics.local import LocalTopics
from balog.topics.memory import MemoryTopics
from tests.consumers.runs import running
from tests.waiting import wait_for

MakePackage = Callable[..., str]


@pytest.fixture
def make_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakePackage]:
    """Give a function that writes modules (``name="source"``, ``sub__name`` in a subpackage) into a package."""
    known = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path / "packages"))

    def make(package: str, **modules: str) -> str:
        root = tmp_path / "packages" / package
        root.mkdir(parents=True)
        (root / "__init__.py").write_text(dedent(modules.pop("init", "")))
        for name, source in modules.items():
            *folders, file = name.split("__") if not name.startswith("__") else [name]
            folder = root.joinpath(*folders)
            folder.mkdir(exist_ok=True)
            (folder / "__init__.py").touch()
            (folder / f"{file}.py").write_text(dedent(source))
        return package

    yield make
    for name in set(sys.modules) - known:
        if not name.startswith(("balog", "venusian", "semantic_version")):
            del sys.modules[name]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """Give a function that calls a command in this process, with the test's folder as the current one."""
    known = set(sys.modules)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = configuration.state.recorder

    def call(*arguments: str) -> "subprocess.CompletedProcess[str]":
        done = CliRunner(env={"COLUMNS": "200"}).invoke(main, arguments)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return subprocess.CompletedProcess(arguments, done.exit_code, done.stdout, done.stderr)

    yield call
    configuration.state.swap(before)
    for name in set(sys.modules) - known:
        if name.split(".")[0] == "team":
            del sys.modules[name]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[LocalTopics]:
    with LocalTopics(tmp_path / "topics") as home:
        yield home


@pytest.fixture
def orders(home: LocalTopics) -> Topic:
    return home.topic("orders")


@pytest.fixture
def publish(orders: Topic) -> Callable[..., list[str]]:
    """Give a function that publishes events with these payloads to ``orders`` and gives their ids."""

    def publish(*payloads: dict[str, object]) -> list[str]:
        events = [Event.new("tests", payload) for payload in payloads]
        orders.publish([Message(event.header.id, encode(event)) for event in events])
        return [event.header.id for event in events]

    return publish


class Bench:
    """An engine on topics in memory: ``publish`` events to ``orders``, ``run`` consumers on them until nothing is left.

    Attributes:
        orders: the topic. ``ledger``: in memory too; it outlives runs.
    """

    def __init__(self) -> None:
        self.home = MemoryTopics()
        self.orders = self.home.topic("orders")
        self.ledger = MemoryLedger()

    def publish(self, *payloads: dict[str, Any], channel: str = "tests", context: Any = None) -> list[str]:
        """Give the events' ids."""
        events = [Event.new(channel, payload, context=context) for payload in payloads]
        self.orders.publish([Message(event.header.id, encode(event)) for event in events])
        return [event.header.id for event in events]

    def engine(self, *consumers: Consumer | Callable[..., Any], **options: Any) -> Engine:
        """Functions become consumers called handler0, handler1 …"""
        hub = ConsumerHub()
        for number, one in enumerate(consumers):
            hub.add(one if isinstance(one, Consumer) else Consumer(one, "orders", name=f"handler{number}"))
        return Engine(hub, self.home, **{"first_delay": 0.001, "ledger": self.ledger, **options})

    def run(self, *consumers: Consumer | Callable[..., Any], **options: Any) -> EngineStats:
        """Run until nothing is left."""
        return self.engine(*consumers, **options).run(until_empty=True)

    def running(self, *consumers: Consumer | Callable[..., Any], **options: Any) -> AbstractContextManager[Engine]:
        """Run in a thread until the block ends; what ended the run is raised there."""
        return running(self.engine(*consumers, **options))

    @property
    def dead(self) -> list[DeadLetter]:
        return self.orders.dead_letters("balog", 10**6)

    @property
    def pending(self) -> int:
        return self.orders.group_state("balog").pending


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture(name="wait_for")
def _wait_for() -> Callable[[Callable[[], object]], object]:
    """Give the function that waits until something is true."""
    return wait_for
