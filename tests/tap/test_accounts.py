"""Streams over several accounts, each with a credential of its own."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from balog.tap import Context, Tap
from balog.tap.credentials import Accounts, ClientCredentials, bearer
from balog.tap.errors import TapError
from balog.tap.http import Client, Policy
from tests.stand_ins.http_server import Answer, HttpStandIn, Request

SCHEMA = {"properties": {"account": {"type": "string"}, "id": {"type": "integer"}, "at": {"type": "integer"}}}


def tap_of_accounts() -> Tap:
    tap = Tap("tap-accounts", config_spec={"url": str, "accounts": [{"name": str, "secret": str}]})

    @tap.client
    def accounts(config: Any) -> Accounts:
        def sign_in(account: Any) -> Client:
            grant = ClientCredentials(f"{config['url']}/token", account["name"], account["secret"])
            return Client(config["url"], auth=bearer(grant), policy=Policy(tries=1))

        return Accounts(config["accounts"], sign_in)

    def read(account: Any, bookmark: Any) -> Iterator[Any]:
        for order in account.client.get("orders", {"since": bookmark}).json():
            yield {"account": account.name, **order}
        if account.name == "bad-later":
            account.client.get("gone")

    @tap.stream("all", schema=SCHEMA, key_properties=["account", "id"])
    @tap.stream("orders", schema=SCHEMA, key_properties=["account", "id"], replication_key="at", is_sorted=False)
    def orders(client: Any, context: Context) -> Iterator[Any]:
        yield from client.records(context, read)

    return tap


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


@pytest.fixture
def run(server: HttpStandIn, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Run the tap with accounts; return its exit code, RECORD messages, last state and log."""

    def run(names: list[str], state: Any = None) -> tuple[Any, list[Any], Any, str]:
        accounts = [{"name": name, "secret": "wr0ng-secret" if name == "bad" else f"s3cret-{name}"} for name in names]
        (tmp_path / "config.json").write_text(json.dumps({"url": server.url, "accounts": accounts}))
        (tmp_path / "state.json").write_text(json.dumps(state or {}))
        with pytest.raises(SystemExit) as ended:
            tap_of_accounts().run(["--config", f"{tmp_path}/config.json", "--state", f"{tmp_path}/state.json"])
        written, log = capfd.readouterr()
        messages = [json.loads(line) for line in written.splitlines()]
        records = [message for message in messages if message["type"] == "RECORD"]
        states = [message["value"] for message in messages if message["type"] == "STATE"]
        return ended.value.code, records, states[-1], log

    return run


def test_accounts_are_read_one_after_another_with_their_own_credentials(
    server: HttpStandIn, run: Callable[..., Any]
) -> None:
    code, records, state, log = run(["a", "b"])
    assert code == 0, log
    assert [(each["stream"], each["record"]["account"], each["record"]["id"]) for each in records] == [
        (stream, account, number) for stream in ("orders", "all") for account in "ab" for number in (1, 2, 3)
    ]
    assert state["bookmarks"]["orders"]["accounts"] == {"a": {"at": 3}, "b": {"at": 3}}
    assert [request.path for request in server.requests].count("/token") == 2


def test_an_account_that_fails_does_not_keep_the_others_waiting(run: Callable[..., Any]) -> None:
    code, records, state, log = run(NAMES)
    assert code == 1
    assert {each["record"]["account"] for each in records if each["stream"] == "orders"} == {"a", "bad-later", "b"}
    assert state["bookmarks"]["orders"]["accounts"] == {"a": {"at": 3}, "b": {"at": 3}}  # no bookmark of failed ones
    assert "2 of 4 accounts failed: bad: the credential client_credentials could not be fetched" in log
    assert "answered invalid_client" in log
    assert "410" in log
    assert "wr0ng" not in log
    assert "s3cret" not in log


def test_the_next_run_resumes_each_account(run: Callable[..., Any]) -> None:
    state = {"bookmarks": {"orders": {"at": 3, "accounts": {"a": {"at": 3}, "b": {"at": 2}}}}}
    _, records, _, _ = run(["a", "b"], state)
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
