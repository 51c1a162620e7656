"""Streams over several accounts, each with a credential of its own."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from balog.tap.credentials import Accounts
from balog.tap.errors import TapError
from tests.stand_ins.http_server import Answer, HttpStandIn, Request

TAP = """
from balog.tap import Tap
from balog.tap.credentials import Accounts, ClientCredentials, bearer
from balog.tap.http import Client, Policy

tap = Tap("tap-accounts", config_spec={"url": str, "accounts": [{"name": str, "secret": str}]})


@tap.client
def accounts(config):
    def sign_in(account):
        grant = ClientCredentials(f"{config['url']}/token", account["name"], account["secret"])
        return Client(config["url"], auth=bearer(grant), policy=Policy(tries=1))

    return Accounts(config["accounts"], sign_in)


def read(account, bookmark):
    for order in account.client.get("orders", {"since": bookmark}).json():
        yield {"account": account.name, **order}
    if account.name == "bad-later":
        account.client.get("gone")


@tap.stream("orders", key_properties=["account", "id"], replication_key="at", is_sorted=False)
def orders(client, context):
    yield from client.records(context, read)


@tap.stream("all", key_properties=["account", "id"])
def every(client, context):
    yield from client.records(context, read)


schema = {"properties": {"account": {"type": "string"}, "id": {"type": "integer"}, "at": {"type": "integer"}}}
tap.schema("orders", schema)
tap.schema("all", schema)
tap.run()
"""
NAMES = ["a", "bad", "bad-later", "b"]


class Source:
    """An API with a token for each account: its orders were changed at 1, 2 … 3."""

    def __call__(self, request: Request) -> Answer:
        if request.path == "/token":
            body = request.body.decode()
            name = body.split("client_id=")[1].split("&")[0]
            if f"client_secret=s3cret-{name}" not in body:
                return Answer(401, b'{"error":"invalid_client"}')
            return Answer(200, json.dumps({"access_token": f"token-{name}", "expires_in": 60}).encode())
        assert request.headers["authorization"].startswith("Bearer token-")
        if request.path == "/gone":
            return Answer(410)
        since = int(request.path.partition("since=")[2] or 0)
        return Answer(200, json.dumps([{"id": n, "at": n} for n in range(max(since, 1), 4)]).encode())


@pytest.fixture
def server() -> Iterator[HttpStandIn]:
    with HttpStandIn(Source()) as server:
        yield server


def run(folder: Path, server: HttpStandIn, names: list[str], state: Any = None) -> tuple[int, list[Any], Any, str]:
    (folder / "tap.py").write_text(TAP)
    accounts = [{"name": name, "secret": "wr0ng-secret" if name == "bad" else f"s3cret-{name}"} for name in names]
    (folder / "config.json").write_text(json.dumps({"url": server.url, "accounts": accounts}))
    (folder / "state.json").write_text(json.dumps(state or {}))
    done = subprocess.run(
        [sys.executable, "tap.py", "--config", "config.json", "--state", "state.json"],
        cwd=folder, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    records = [message for message in messages if message["type"] == "RECORD"]
    states = [message["value"] for message in messages if message["type"] == "STATE"]
    return done.returncode, records, states[-1], done.stderr


def test_accounts_are_read_one_after_another_with_their_own_credentials(server: HttpStandIn, tmp_path: Path) -> None:
    code, records, state, log = run(tmp_path, server, ["a", "b"])
    assert code == 0, log
    assert [(each["stream"], each["record"]["account"], each["record"]["id"]) for each in records] == [
        (stream, account, number) for stream in ("orders", "all") for account in "ab" for number in (1, 2, 3)
    ]
    assert state["bookmarks"]["orders"]["accounts"] == {"a": {"at": 3}, "b": {"at": 3}}
    assert [request.path for request in server.requests].count("/token") == 2


def test_an_account_that_fails_does_not_keep_the_others_waiting(server: HttpStandIn, tmp_path: Path) -> None:
    code, records, state, log = run(tmp_path, server, NAMES)
    assert code == 1
    assert {each["record"]["account"] for each in records if each["stream"] == "orders"} == {"a", "bad-later", "b"}
    assert state["bookmarks"]["orders"]["accounts"] == {"a": {"at": 3}, "b": {"at": 3}}  # no bookmark of failed ones
    assert "2 of 4 accounts failed: bad: the credential client_credentials could not be fetched" in log
    assert "answered invalid_client" in log
    assert "410" in log
    assert "wr0ng" not in log
    assert "s3cret" not in log


def test_the_next_run_resumes_each_account(server: HttpStandIn, tmp_path: Path) -> None:
    state = {"bookmarks": {"orders": {"at": 3, "accounts": {"a": {"at": 3}, "b": {"at": 2}}}}}
    _, records, _, _ = run(tmp_path, server, ["a", "b"], state)
    found = [(each["record"]["account"], each["record"]["id"]) for each in records if each["stream"] == "orders"]
    assert found == [("a", 3), ("b", 2), ("b", 3)]


@pytest.mark.parametrize(
    ("configs", "reason"),
    [
        ("a", "list of objects"),
        ([5], "list of objects"),
        ([], "no accounts"),
        ([{}], "account 0 of the config has no 'name'"),
        ([{"name": "a"}] * 2, "two accounts"),
    ],
)
def test_accounts_that_cannot_be_told_apart(configs: Any, reason: str) -> None:
    with pytest.raises(TapError, match=reason):
        Accounts(configs, lambda account: None)
