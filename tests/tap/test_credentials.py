import json
import os
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest

from balog.tap.credentials import (
    Bearer,
    Credential,
    Granted,
    RefreshToken,
    basic,
    bearer,
    header,
    once,
    periodic,
)
from balog.tap.errors import SourceError, TapError
from balog.tap.http import Client, Policy, connections
from balog.testing import capture_events
from tests.stand_ins.http_server import Answer, HttpStandIn, Request
from tests.waiting import Clock


class Source:
    """Gives token-1, token-2 …; or fails with what is in ``trouble``."""

    def __init__(self) -> None:
        self.asked = 0
        self.trouble: Exception | None = None

    def __call__(self) -> str:
        self.asked += 1
        if self.trouble:
            raise self.trouble
        return f"token-{self.asked}"


@pytest.fixture
def source() -> Source:
    return Source()


def test_it_is_asked_for_again_when_old(source: Source, clock: Clock) -> None:
    credential = Credential(source, 25 * 60, clock=clock)
    assert credential() == "token-1"
    clock.now += 25 * 60 - 1
    assert credential() == "token-1"
    clock.now += 1
    assert credential() == "token-2"


def test_a_refresh_that_fails_leaves_the_old_one_until_it_ends(source: Source, clock: Clock) -> None:
    credential = Credential(source, 25 * 60, clock=clock)
    credential()
    clock.now += 26 * 60
    source.trouble = ConnectionResetError(104, "Connection reset by peer", "token=s3cret")
    with capture_events() as captured:
        assert credential() == "token-1"
        assert credential() == "token-1"
    assert source.asked == 2  # not again for some seconds
    (event,) = captured
    assert event.header.level == "WARNING"
    assert "Connection reset by peer" in event.payload["message"]
    assert "s3cret" not in event.payload["message"]
    clock.now += 11
    source.trouble = None
    assert credential() == "token-3"
    clock.now += 31 * 60
    source.trouble = ValueError("token=s3cret")
    with pytest.raises(SourceError, match="could not be fetched: ValueError") as caught:
        credential()
    assert caught.value.__cause__ is None
    assert "s3cret" not in str(caught.value)


def test_threads_go_on_with_the_old_one_while_one_asks(clock: Clock) -> None:
    asking, go_on = threading.Event(), threading.Event()
    given, start = iter(["old", "new"]), clock.now

    def slow() -> str:
        if clock.now > start:
            asking.set()
            assert go_on.wait(10)
        return next(given)

    credential = Credential(slow, 10, clock=clock)
    credential()
    clock.now += 11
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(credential)
        assert asking.wait(10)
        assert credential() == "old"
        go_on.set()
    assert (asked.result(), credential()) == ("new", "new")


def test_a_credential_that_needs_itself_is_refused() -> None:
    credential = once(lambda: credential())
    with pytest.raises(SourceError, match="uses that credential itself"):
        credential()
    again = once(lambda: again.refresh())
    with pytest.raises(SourceError, match="uses that credential itself"):
        again()


def test_as_decorators() -> None:
    @periodic(minutes=5)
    def token() -> str:
        return "s3cret"

    @once
    def key() -> str:
        return "s3cret"

    assert (token(), key()) == ("s3cret", "s3cret")
    assert (repr(token), repr(key)) == ("<Credential token>", "<Credential key>")


@pytest.mark.parametrize("minutes", [0, -1])
def test_times_that_cannot_be_are_refused(minutes: float) -> None:
    with pytest.raises(TapError, match="credential"):
        periodic(lambda: "x", minutes=minutes)


@pytest.mark.parametrize(
    ("auth", "headers"),
    [
        (bearer("s3cret"), {"Authorization": "Bearer s3cret"}),
        (bearer(lambda: "s3cret"), {"Authorization": "Bearer s3cret"}),
        (header("X-Api-Key", "s3cret"), {"X-Api-Key": "s3cret"}),
        (basic("me", "s3cret"), {"Authorization": "Basic bWU6czNjcmV0"}),
    ],
)
def test_headers_of_credentials(auth: Bearer, headers: dict[str, str]) -> None:
    signed = auth.sign(connections.Request("GET", "https://api.example.com/", {"A": "1"}, None))
    assert signed.headers == {"A": "1", **headers}
    assert not auth.rejected(signed, 401, {})
    assert "s3cret" not in repr(auth)
    assert "bWU6" not in repr(auth)
    assert "s3cret" not in repr(Granted("s3cret", 1))


class Login:
    """An OAuth server whose refresh tokens are good for one use."""

    def __init__(self) -> None:
        self.number = 0

    def __call__(self, request: Request) -> Answer:
        if f"refresh_token=r3fresh-{self.number}&" not in request.body.decode() + "&":
            return Answer(400, b'{"error":"invalid_grant","error_description":"r3fresh s3cret"}')
        self.number += 1
        said = {"access_token": f"access-{self.number}", "refresh_token": f"r3fresh-{self.number}", "expires_in": 60}
        return Answer(200, json.dumps(said).encode())


def refresher(server: HttpStandIn, **options: Any) -> RefreshToken:
    return RefreshToken(f"{server.url}/token", "me", "s3cret", "r3fresh-0", **options)


def test_a_refresh_token_that_is_replaced_is_written_into_the_config(server: HttpStandIn, tmp_path: Path) -> None:
    server.respond = Login()
    path = tmp_path / "config.json"
    path.write_text('{"user": "me", "refresh_token": "r3fresh-0"}')
    path.chmod(0o644)
    ask = refresher(server, config_path=path)
    assert [ask(), ask()] == [Granted("access-1", 60), Granted("access-2", 60)]
    assert json.loads(path.read_text()) == {"user": "me", "refresh_token": "r3fresh-2"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["config.json"]
    form = {"grant_type": "refresh_token", "client_id": "me", "client_secret": "s3cret", "refresh_token": "r3fresh-0"}
    assert dict(parse_qsl(server.requests[0].body.decode())) == form


def test_a_refresh_token_that_nobody_keeps_is_told(server: HttpStandIn) -> None:
    server.respond = Login()
    with capture_events() as captured:
        assert periodic(refresher(server))() == "access-1"
    (message,) = [event.payload["message"] for event in captured if event.payload["cls_type"] == "log"]
    assert "set token_file or config_path" in message
    assert "r3fresh" not in message


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"[]", "a JSON object"),
        (b"{}", "without an access_token"),
        (b"<html>", "without JSON"),
        (b'{"access_token":""}', "without an access_token"),
        (b'{"access_token":{"a":1}}', "without an access_token"),
        (b'{"access_token":"s3cret\\nX-Header: 1"}', "that no header can contain"),
        (b'{"error":"invalid_scope"}', "answered invalid_scope"),  # with 200, as some do
        (b'{"error":"s3cret or 1"}', "answered no reason"),
        (b"[" * 100_000, "without JSON"),
    ],
)
def test_a_token_endpoint_that_answers_something_else(server: HttpStandIn, body: bytes, said: str) -> None:
    server.will(Answer(200, body))
    with pytest.raises(SourceError, match=said) as caught:
        refresher(server)()
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("seconds", "given"),
    [
        ('"90"', Granted("x", 90)),
        ('"90.5"', Granted("x", 90.5)),
        *((text, "x") for text in ("null", "0", "-1", "true", '"soon"', '"nan"', '"' + "9" * 400 + '"', "[]")),
    ],
)
def test_a_token_s_time_as_servers_write_it(server: HttpStandIn, seconds: str, given: Any) -> None:
    server.will(Answer(200, b'{"access_token":"x","expires_in":%b}' % seconds.encode()))
    assert refresher(server)() == given


def test_a_token_endpoint_that_is_down_is_retryable(server: HttpStandIn) -> None:
    server.respond = lambda request: Answer(503)
    client = Client(server.url, policy=Policy(tries=1))
    with pytest.raises(SourceError, match="503") as caught:
        periodic(refresher(server, client=client))()
    assert caught.value.retryable


def test_a_token_endpoint_that_is_slow_or_gone_keeps_nobody_waiting_while_the_token_is_good(
    server: HttpStandIn, clock: Clock
) -> None:
    server.respond = lambda request: Answer(200, b'{"access_token":"x","expires_in":60}')
    client = Client(server.url, policy=Policy(tries=1), timeout=0.2)
    token = Credential(refresher(server, client=client), clock=clock)
    assert token() == "x"
    clock.now += 55
    server.respond = lambda request: Answer(trouble="hang")
    assert token() == "x"  # after one timeout
    server.stop()
    clock.now += 4
    assert token() == "x"  # without another try
    clock.now += 11
    with pytest.raises(SourceError, match=r"no response from .*: Connection refused") as caught:
        token()
    assert caught.value.retryable
