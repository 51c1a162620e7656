"""Packages of handlers, made for a test and forgotten after it."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from balog.event import Event, encode
from balog.topics import Message, Topic
from balog.topics.local import LocalTopics

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
