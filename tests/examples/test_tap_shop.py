"""The example's tap, as a program, against its shop: what comes is what the shop has, whatever happens in between."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from examples.shop_server import Refusal, Shop
from tests.programs import run_program

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "tap_shop"


class Ran(NamedTuple):
    """What a run wrote."""

    code: int
    messages: list[dict[str, Any]]
    stderr: str

    def rows(self, stream: str) -> list[dict[str, Any]]:
        return [one["record"] for one in self.messages if one["type"] == "RECORD" and one["stream"] == stream]

    @property
    def state(self) -> dict[str, Any]:
        states: list[dict[str, Any]] = [one["value"] for one in self.messages if one["type"] == "STATE"]
        return states[-1]

    def points(self, metric: str) -> list[dict[str, Any]]:
        events = [json.loads(line)["payload"] for line in self.stderr.splitlines() if line.startswith('{"schema"')]
        return [payload for payload in events if payload.get("metric") == metric]


class Runner:
    """Runs the tap with a config of its own."""

    def __init__(self, shop: Shop, folder: Path) -> None:
        self.config = folder / "config.json"
        self._state = folder / "state.json"
        given = json.loads((EXAMPLE / "config.json").read_text())
        self.config.write_text(json.dumps({**given, "base_url": shop.url, "config_path": str(self.config)}))

    def start(self, state: dict[str, Any] | None = None) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tap_shop", "--config", str(self.config)]
        if state is not None:
            self._state.write_text(json.dumps(state))
            command += ["--state", str(self._state)]
        environment = {key: value for key, value in os.environ.items() if not key.startswith("BALOG_")}
        environment["PYTHONPATH"] = os.pathsep.join([str(EXAMPLE), str(ROOT)])
        return subprocess.Popen(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
        )

    def end(self, process: subprocess.Popen[str]) -> Ran:
        try:
            out, err = process.communicate(timeout=120)
        finally:
            process.kill()
        return Ran(process.returncode, [json.loads(line) for line in out.splitlines()], err)

    def __call__(self, state: dict[str, Any] | None = None) -> Ran:
        return self.end(self.start(state))


@pytest.fixture
def shop() -> Iterator[Shop]:
    with Shop(60) as shop:
        yield shop


@pytest.fixture
def run(shop: Shop, tmp_path: Path) -> Runner:
    return Runner(shop, tmp_path)


def by_id(rows: list[dict[str, Any]]) -> dict[Any, dict[str, Any]]:
    return {row["id"]: row for row in rows}


def assert_whole(shop: Shop, *runs: Ran) -> None:
    """What these runs gave together is what the shop has."""

    def rows(stream: str) -> list[dict[str, Any]]:
        return [row for run in runs for row in run.rows(stream)]

    assert by_id(rows("customers")) == shop.customers
    assert by_id(rows("orders")) == shop.orders
    assert {(row["order_id"], row["line"]): row for row in rows("order_lines")} == {
        (line["order_id"], line["line"]): line for lines in shop.lines.values() for line in lines
    }
    assert runs[-1].rows("currencies") == shop.currencies


def test_rows_equal_the_shop_s(shop: Shop, run: Runner) -> None:
    ran = run()
    assert ran.code == 0, ran.stderr
    assert_whole(shop, ran)
    assert len(ran.rows("orders")) == len(shop.orders)  # each once
    endpoints = {point["tags"]["endpoint"] for point in ran.points("http_request_duration")}
    assert endpoints == {"/v1/customers", "/v1/orders", "/v1/orders/{id}/lines", "/v1/currencies", "token"}


def test_the_next_run_gives_what_was_changed(shop: Shop, run: Runner) -> None:
    first = run()
    shop.touch(customers=3, orders=2)
    again = run(first.state)
    assert again.code == 0, again.stderr
    last_customer = max(row["updated_at"] for row in first.rows("customers"))
    assert {row["id"] for row in again.rows("customers")} - {1, 2, 3} <= {
        row["id"] for row in first.rows("customers") if row["updated_at"] == last_customer
    }
    assert {1, 2} <= by_id(again.rows("orders")).keys()
    assert len(again.rows("orders")) <= 3
    assert again.rows("currencies") == shop.currencies
    assert by_id([*first.rows("customers"), *again.rows("customers")]) == shop.customers


def test_tokens_that_end_in_the_middle_are_renewed_and_kept(shop: Shop, run: Runner) -> None:
    shop.token_requests = 40
    ran = run()
    assert ran.code == 0, ran.stderr
    assert_whole(shop, ran)
    assert len([url for _, url in shop.requests if url == "/oauth/token"]) >= 3
    kept = json.loads(run.config.read_text())
    assert kept["refresh_token"] == shop.refresh_token != "example-refresh-token"
    assert shop.refresh_token not in ran.stderr
    assert run(ran.state).code == 0  # the next run logs in by what was kept


def test_storms_of_429_are_waited_out(shop: Shop, run: Runner) -> None:
    shop.fail(429, times=3, Retry_After="0")
    ran = run()
    assert ran.code == 0, ran.stderr
    assert_whole(shop, ran)
    retries = [point for point in ran.points("http_retry_count") if point["tags"]["http_status_code"] == 429]
    assert sum(point["value"] for point in retries) == 3


@pytest.mark.parametrize("how", ["cursor", "content"])
def test_a_page_for_ever_fails_its_stream_and_no_other(shop: Shop, run: Runner, how: str) -> None:
    shop.repeats = how
    ran = run()
    assert ran.code == 1
    assert len([url for _, url in shop.requests if url.startswith("/v1/customers")]) <= 3
    (critical,) = [line for line in ran.stderr.splitlines() if line.startswith("CRITICAL")]
    assert critical.startswith("CRITICAL customers: ")
    assert "the source repeats its pages" in critical
    assert by_id(ran.rows("orders")) == shop.orders
    assert ran.rows("currencies") == shop.currencies


def test_a_shop_that_is_killed_and_comes_back(shop: Shop, run: Runner) -> None:
    back: list[threading.Timer] = []

    def kill(path: str) -> None:
        if len(shop.requests) == 50 and not back:
            back.append(threading.Timer(0.2, shop.start))
            shop.stop()
            back[0].start()

    shop.before = kill
    ran = run()
    back[0].join()
    assert ran.code == 0, ran.stderr
    assert_whole(shop, ran)
    assert sum(point["value"] for point in ran.points("http_retry_count")) >= 1


def test_a_shop_that_breaks_in_the_middle_is_gone_on_with(shop: Shop, run: Runner) -> None:
    def refuse(path: str) -> None:
        if path == "/v1/orders/30/lines":
            raise Refusal(400, "broken")

    shop.before = refuse
    first = run()
    assert first.code == 1
    assert "CRITICAL" in first.stderr
    shop.before = lambda path: None
    again = run(first.state)
    assert again.code == 0, again.stderr
    assert_whole(shop, first, again)


def test_a_run_that_is_asked_to_end_is_gone_on_with(shop: Shop, run: Runner) -> None:
    process: list[subprocess.Popen[str]] = []
    is_started = threading.Event()

    def end(path: str) -> None:
        if len(shop.requests) == 80:
            assert is_started.wait(10)
            process[0].send_signal(signal.SIGTERM)

    shop.before = end
    process.append(run.start())
    is_started.set()
    first = run.end(process[0])
    assert first.code == 143, first.stderr
    shop.before = lambda path: None
    again = run(first.state)
    assert again.code == 0, again.stderr
    assert_whole(shop, first, again)


def test_a_run_that_is_asked_to_end_while_it_logs_in_keeps_the_new_refresh_token(shop: Shop, run: Runner) -> None:
    process: list[subprocess.Popen[str]] = []
    is_started = threading.Event()

    def end(path: str) -> None:
        assert is_started.wait(10)
        process[0].send_signal(signal.SIGTERM)
        time.sleep(0.3)  # the signal comes while the answer is awaited

    shop.before = end
    process.append(run.start())
    is_started.set()
    ended = run.end(process[0])
    assert ended.code == 143, ended.stderr
    assert [url for _, url in shop.requests] == ["/oauth/token"]
    assert json.loads(run.config.read_text())["refresh_token"] == shop.refresh_token != "example-refresh-token"


def test_a_login_that_is_refused_says_why_and_no_secret(shop: Shop, run: Runner) -> None:
    shop.refresh_token = "another"
    ran = run()
    assert ran.code != 0
    assert "invalid_grant" in ran.stderr
    assert "example-secret" not in ran.stderr
    assert "example-refresh-token" not in ran.stderr


def test_a_tap_in_one_page(shop: Shop, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"base_url": shop.url, "access_token": shop.key}))
    command = [sys.executable, ROOT / "examples" / "tap_cool.py", "--config", tmp_path / "config.json"]
    done = run_program(*command, cwd=tmp_path)
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert by_id([one["record"] for one in records if one["type"] == "RECORD"]) == shop.customers
