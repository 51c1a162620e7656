"""The example balog-redis-streams, installed into an environment of its own, on Debian's Redis."""

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from balog.event import Event, encode
from tests.example_package import python_with
from tests.programs import run_program
from tests.services.servers.redis import PASSWORD, RedisServer, running_redis

pytestmark = pytest.mark.service

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "balog-redis-streams"

HANDLERS = """
from balog.consumers import Reject, consumer_config

@consumer_config(topic="orders", cls_type="order")
def ship(settings, event):
    if not event.payload.get("to"):
        raise Reject("an order without an address")
    print("shipped to", event.payload["to"])
"""

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the example, and with the packages of this one."""
    return python_with(tmp_path_factory.mktemp("redis-streams"), EXAMPLE)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with running_redis(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def url(server: RedisServer) -> str:
    return f"redis://127.0.0.1:{server.port}/0?password.env=EXAMPLE_PASSWORD"


@pytest.fixture
def run(python: Path, tmp_path: Path) -> Run:
    def run(*arguments: str, feed: str = "", code: int = 0) -> "subprocess.CompletedProcess[str]":
        environment = {**os.environ, "EXAMPLE_PASSWORD": PASSWORD, "XDG_STATE_HOME": str(tmp_path / "state")}
        return run_program(python, "-m", *arguments, cwd=tmp_path, env=environment, feed=feed, code=code)

    return run


def test_redis_streams_keep_the_contract(run: Run, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BALOG_REDIS_URL", url)
    done = run("pytest", "-p", "no:cacheprovider", str(EXAMPLE / "tests"), "--rootdir", str(EXAMPLE))
    assert re.search(r"\b[5-9]\d passed", done.stdout)


def test_commands_and_a_consumer_use_the_backend(run: Run, url: str, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(HANDLERS)
    orders = [{"cls_type": "order", "to": "Kyoto"}, {"cls_type": "order"}]
    lines = [encode(Event.new("shop.orders", order)).decode() for order in orders]
    run("balog", "topics", "publish", "orders", "-", "--topics", url, feed="\n".join(lines) + "\n")
    assert "orders" in run("balog", "topics", "list", "--topics", url).stdout

    done = run("balog", "consume", "shop", "--topics", url, "--until-empty", "--ledger", "none:", code=1)
    assert done.stdout == "shipped to Kyoto\n"

    described = json.loads(run("balog", "topics", "describe", "orders", "--topics", url, "--json").stdout)["state"]
    assert (described["messages"], described["groups"][0]["dead"], described["groups"][0]["lag"]) == (2, 1, 0)
    run("balog", "topics", "redrive", "orders", "--topics", url, "--group", "balog", "--set", "payload.to=Osaka")
    done = run("balog", "consume", "shop", "--topics", url, "--until-empty", "--ledger", "none:")
    assert done.stdout == "shipped to Osaka\n"


@pytest.mark.parametrize(
    "bad", ["redis://127.0.0.1/0", "redis://127.0.0.1:1/x", "redis://127.0.0.1:1/0?color=red", "redis:"]
)
def test_an_invalid_url_is_one_line(run: Run, bad: str) -> None:
    done = run("balog", "topics", "list", "--topics", bad, code=2)
    assert "redis" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_wrong_password_is_one_line_without_it(run: Run, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WRONG_PASSWORD", "hunter2")
    done = run("balog", "topics", "list", "--topics", url.replace("EXAMPLE", "WRONG"), code=1)
    assert "hunter2" not in done.stderr
    assert len(done.stderr.splitlines()) == 1
