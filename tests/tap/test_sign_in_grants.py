"""OAuth grants against a server of Authlib, which shares no code with them."""

import json
import re
import stat
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from balog.common.errors import ConfigError
from balog.tap.credentials import (
    AuthorizationCode,
    ClientCredentials,
    Credential,
    GrantError,
    Password,
    RefreshToken,
    TokenGrant,
    bearer,
    header,
)
from balog.tap.errors import SourceError, TapError
from balog.tap.http import Client, HttpError, Policy
from tests.stand_ins.oauth_server import OAuthServer
from tests.waiting import wait_for

ID, SECRET = "tap", "application-s3cret&+ä"


@pytest.fixture
def server() -> Iterator[OAuthServer]:
    with OAuthServer() as server:
        yield server


def user_of(server: OAuthServer, grant: TokenGrant) -> Any:
    """Return the user as which a grant signs in; the second request uses the same token."""
    with Client(f"{server.url}/api", auth=bearer(grant)) as client:
        found = [client.get("me").json()["user"] for _ in range(2)]
    assert found[0] == found[1]
    return found[0]


def first_token(server: OAuthServer) -> str:
    """Sign in as a person does in a browser, and return the refresh token."""
    Password(f"{server.url}/token", "ada", "user-s3cret", ID, SECRET)()
    server.requests.clear()
    return str(server.tokens[-1].fields["refresh_token"])


def test_client_credentials(server: OAuthServer) -> None:
    assert user_of(server, ClientCredentials(f"{server.url}/token", ID, SECRET, scope="read")) is None
    assert server.tokens[0].fields["scope"] == "read"
    assert server.requests == ["client_credentials"]


def test_client_credentials_in_a_header() -> None:
    with OAuthServer(method="client_secret_basic") as server:
        grant = ClientCredentials(f"{server.url}/token", ID, SECRET, in_header=True)
        assert user_of(server, grant) is None
        with pytest.raises(GrantError, match="answered invalid_client: it rejected the application; check client_id"):
            ClientCredentials(f"{server.url}/token", ID, SECRET)()


def test_password(server: OAuthServer) -> None:
    assert user_of(server, Password(f"{server.url}/token", "ada", "user-s3cret", ID, SECRET)) == "ada"
    with pytest.raises(SourceError, match="could not be fetched: the token endpoint answered") as caught:
        user_of(server, Password(f"{server.url}/token", "ada", "wr0ng-pass", ID, SECRET))
    assert "wr0ng" not in str(caught.value)


@pytest.mark.parametrize("rotates", [True, False])
def test_refresh_token_in_a_file_of_its_own(tmp_path: Path, rotates: bool) -> None:
    path = tmp_path / "tokens.json"
    with OAuthServer(rotates=rotates) as server:
        token = first_token(server)
        for _ in range(3):  # each a run of the tap
            grant = RefreshToken(f"{server.url}/token", ID, SECRET, token, token_file=path)
            assert user_of(server, grant) == "ada"
        assert server.requests == ["refresh_token"] * 3
        if not rotates:
            assert not path.exists()
            return
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        (stored,) = json.loads(path.read_text())["refresh_tokens"].values()
        assert stored == server.tokens[-1].fields["refresh_token"]
        assert [each.name for each in tmp_path.iterdir()] == ["tokens.json"]
        again = first_token(server)  # somebody signs in again and writes the token into the config
        assert user_of(server, RefreshToken(f"{server.url}/token", ID, SECRET, again, token_file=path)) == "ada"
        assert len(json.loads(path.read_text())["refresh_tokens"]) == 2


def test_runs_that_share_a_rotating_token_use_it_one_after_another(server: OAuthServer, tmp_path: Path) -> None:
    token, path = first_token(server), tmp_path / "tokens.json"
    server.delay = 0.05
    grants = [RefreshToken(f"{server.url}/token", ID, SECRET, token, token_file=path) for _ in range(6)]
    with ThreadPoolExecutor(6) as pool:
        assert len(list(pool.map(lambda grant: grant(), grants))) == len(server.requests) == 6


def test_a_newer_token_in_the_config_takes_precedence(server: OAuthServer, tmp_path: Path) -> None:
    token, path = first_token(server), tmp_path / "config.json"
    path.write_text(json.dumps({"refresh_token": token}))
    first, second = (RefreshToken(f"{server.url}/token", ID, SECRET, token, config_path=path) for _ in range(2))
    assert isinstance(first(), tuple)
    assert isinstance(second(), tuple)  # it read the first's token, since its own has been used


def test_a_place_that_cannot_be_written_is_reported_before_the_token_is_used(
    server: OAuthServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = first_token(server)

    def no_space(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.posix_fallocate", no_space)
    grant = RefreshToken(f"{server.url}/token", ID, SECRET, token, token_file=tmp_path / "tokens.json")
    with pytest.raises(ConfigError, match="a new credential cannot be written: No space left"):
        grant()
    assert server.requests == []
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ConfigError, match="No such file"):
        RefreshToken(f"{server.url}/token", ID, SECRET, token, token_file=tmp_path / "no" / "tokens.json")()


def test_two_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TapError, match="expected one file"):
        RefreshToken("http://x.example", ID, SECRET, "r", config_path="a", token_file="b")


def test_a_revoked_refresh_token_says_what_to_do(server: OAuthServer, tmp_path: Path) -> None:
    token = first_token(server)
    server.revoke()
    with pytest.raises(SourceError, match="answered invalid_grant: it rejected the refresh token; sign in again") as it:
        user_of(server, RefreshToken(f"{server.url}/token", ID, SECRET, token, token_file=tmp_path / "t"))
    assert not it.value.retryable
    assert token not in str(it.value)


def test_a_token_that_expires_is_renewed_once_for_all_threads(server: OAuthServer) -> None:
    grant = ClientCredentials(f"{server.url}/token", ID, SECRET)
    server.delay = 0.05
    with Client(f"{server.url}/api", auth=bearer(grant)) as client:

        def all_at_once() -> list[int]:
            with ThreadPoolExecutor(8) as pool:
                return list(pool.map(lambda _: client.get("me").status, range(8)))

        assert all_at_once() == [200] * 8
        assert len(server.requests) == 1
        server.expire()  # before the lifetime that the server promised
        assert all_at_once() == [200] * 8
        assert len(server.requests) == 2


def test_a_token_is_refreshed_before_it_expires(server: OAuthServer) -> None:
    now = [0.0]
    token = Credential(ClientCredentials(f"{server.url}/token", ID, SECRET), clock=lambda: now[0])
    with Client(f"{server.url}/api", auth=bearer(token)) as client:
        for now[0] in (0, 2990, 3010, 5000):  # 3600 s
            assert client.get("me").status == 200
    assert len(server.requests) == 2


def test_a_token_that_stays_rejected_is_fetched_once_more_only(server: OAuthServer) -> None:
    with Client(f"{server.url}/api", auth=header("Authorization", ClientCredentials(f"{server.url}/token", ID, SECRET)),
                policy=Policy(tries=3, sleep=lambda seconds: None)) as client:  # fmt: skip
        with pytest.raises(HttpError, match="401") as caught:
            client.get("me")
    assert len(server.requests) == 2
    assert not any(token.fields["access_token"] in str(caught.value) for token in server.tokens)


def test_a_failure_is_shared_by_the_threads_that_waited_for_it() -> None:
    asked, go_on = [], threading.Event()

    def fetch() -> str:
        asked.append(1)
        assert go_on.wait(10)
        raise SourceError("down", retryable=True)

    token = Credential(fetch)
    with ThreadPoolExecutor(6) as pool:
        calls = [pool.submit(token) for _ in range(6)]
        wait_for(lambda: bool(asked))
        time.sleep(0.2)
        go_on.set()
    errors = [call.exception() for call in calls]
    assert all(isinstance(error, SourceError) and error.retryable for error in errors)
    assert len(asked) < 6  # a thread that started late may ask again


def visit(text: str, more: str = "") -> None:
    """Do what the person does in the browser: it follows the redirect back to the tap."""
    url = re.search(r"http\S+", text)
    assert url
    try:
        urllib.request.urlopen(url[0] + more, timeout=10).read()
    except urllib.error.HTTPError as error:
        error.close()


def test_authorization_code(server: OAuthServer, tmp_path: Path) -> None:
    shown: list[str] = []

    def show(text: str) -> None:
        shown.append(text)
        threading.Thread(target=visit, args=(text,)).start()

    def grant() -> AuthorizationCode:
        return AuthorizationCode(
            f"{server.url}/token", f"{server.url}/authorize", ID, SECRET,
            scope="read", token_file=tmp_path / "tokens.json", show=show,
        )  # fmt: skip

    assert user_of(server, grant()) == "ada"
    assert user_of(server, grant()) == "ada"
    assert len(shown) == 1
    assert "code_challenge_method=S256" in shown[0]
    assert SECRET not in shown[0]
    assert server.requests == ["authorization_code", "refresh_token"]
    server.revoke()
    assert user_of(server, grant()) == "ada"
    assert len(shown) == 2  # the stored token is rejected: it asks again


def test_authorization_code_refused_and_forged(server: OAuthServer) -> None:
    def deny(text: str) -> None:
        port = re.search(r"127\.0\.0\.1%3A(\d+)", text)
        assert port
        visit(f"http://127.0.0.1:{port[1]}/?code=f0rged&state=wrong")
        threading.Thread(target=visit, args=(text, "&deny=1")).start()

    def forge(text: str) -> None:
        threading.Thread(target=deny, args=(text,)).start()

    grant = AuthorizationCode(f"{server.url}/token", f"{server.url}/authorize", ID, SECRET, show=forge)
    with pytest.raises(SourceError, match="the sign-in was refused: access_denied"):
        grant()
    grant = AuthorizationCode(
        f"{server.url}/token", f"{server.url}/authorize", ID, SECRET, show=lambda text: None, timeout=0.2
    )
    with pytest.raises(SourceError, match="nobody has signed in in time"):
        grant()
    grant = AuthorizationCode(f"{server.url}/token", f"{server.url}/authorize", ID, SECRET)
    with pytest.raises(SourceError, match="there is no terminal"):
        grant()


def test_no_grant_shows_a_secret(server: OAuthServer) -> None:
    url = f"{server.url}/token"
    grants = [
        ClientCredentials(url, ID, SECRET),
        Password(url, "ada", "user-s3cret", ID, SECRET),
        RefreshToken(url, ID, SECRET, "refresh-s3cret"),
        AuthorizationCode(url, url, ID, SECRET),
    ]
    for grant in grants:
        assert "s3cret" not in repr(grant) + repr(bearer(grant)) + repr(Credential(grant))
