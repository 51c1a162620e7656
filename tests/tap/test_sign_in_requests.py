"""Sign-ins that change a request: keys, digests, signatures, certificates."""

import hashlib
import io
import logging
import ssl
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import requests
import trustme
from cryptography.hazmat.primitives import serialization
from hypothesis import given, settings
from hypothesis import strategies as st
from werkzeug.datastructures import Authorization, WWWAuthenticate

from balog.common.errors import ConfigError
from balog.tap.credentials import (
    Bearer,
    ClientCertificate,
    Digest,
    QueryKey,
    cookie,
    header,
    once,
    query,
)
from balog.tap.credentials.digest import _best
from balog.tap.errors import SourceError, TapError
from balog.tap.http import Client, HttpError, Policy
from balog.tap.http.connections import Request
from balog.testing import capture_events
from tests.stand_ins.http_server import Answer, HttpStandIn
from tests.stand_ins.http_server import Request as Received

KEY = "k3y-s3cret/&"
ONCE = Policy(tries=1)


@pytest.mark.parametrize(
    ("auth", "place", "sent"),
    [
        (query("api key", KEY), "path", "/v2/me?page=2&api+key=k3y-s3cret%2F%26"),
        (header("X-Api-Key", KEY), "x-api-key", KEY),
        (cookie("session", "k3y-s3cret"), "cookie", "session=k3y-s3cret"),
    ],
)
def test_a_key_in_its_place(server: HttpStandIn, auth: Any, place: str, sent: str) -> None:
    server.respond = lambda request: Answer(403, f"{KEY} {request.path} {request.headers.get('cookie')}".encode())
    with Client(f"{server.url}/v2", auth=auth, policy=ONCE) as client:
        with capture_events() as events, pytest.raises(HttpError) as caught:
            client.get("me", {"page": 2})
    (request,) = server.requests
    assert (request.path if place == "path" else request.headers[place]) == sent
    for text in [str(caught.value), repr(auth), repr(client), repr(caught.value.response), *map(repr, events)]:
        assert "k3y-s3cret" not in text
    assert caught.value.response.url == f"{server.url}/v2/me?page=2"


def test_a_key_in_the_query_replaces_that_of_a_next_page_s_url(server: HttpStandIn) -> None:
    with Client(server.url, auth=query("key", KEY)) as client:
        client.get(f"{server.url}/me?key=old&page=3")
    assert server.requests[0].path == "/me?page=3&key=k3y-s3cret%2F%26"


def test_a_key_in_the_query_follows_redirects(server: HttpStandIn) -> None:
    server.will(Answer(302, headers={"Location": "/there"}), Answer())
    with Client(server.url, auth=query("key", "k3y")) as client:
        assert client.get("here").url == f"{server.url}/there"
    assert [request.path for request in server.requests] == ["/here?key=k3y", "/there?key=k3y"]


def test_a_key_in_the_query_is_not_in_urllib3_s_log(server: HttpStandIn, caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("urllib3.connectionpool").disabled = False  # a config of another test may have disabled it
    at_debug = caplog.at_level(logging.DEBUG, "urllib3")
    with at_debug, Client(server.url, auth=query("key", "k3y-s3cret")) as client:
        client.get("me")
    assert "/me?…" in caplog.text
    assert "k3y-s3cret" not in caplog.text


@pytest.mark.parametrize("kind", ["query", "cookie"])
def test_a_key_that_is_rejected_is_fetched_again(server: HttpStandIn, kind: str) -> None:
    keys = iter(["old", "new"])
    key = once(lambda: next(keys))
    auth: QueryKey | Bearer = query("key", key) if kind == "query" else cookie("key", key)
    server.respond = lambda request: Answer(200 if "key=new" in f"{request.path}{request.headers['cookie']}" else 401)
    with Client(server.url, auth=auth) as client:
        assert client.get("me").status == 200


@pytest.mark.parametrize("name", ["", "a b", "a=b", "a;b", "ä"])
def test_names_that_no_cookie_can_have(name: str) -> None:
    with pytest.raises(TapError, match="cookie"):
        cookie(name, "x")


# -- digest -----------------------------------------------------------------------------------------------------------


class DigestChecker:
    """Asks for a digest, and checks it with werkzeug's parser and hashlib; each nonce is good for some requests."""

    def __init__(self, user: str, password: str, *, algorithm: str = "SHA-256", uses: int = 100, **more: str) -> None:
        self.user, self.password, self.algorithm, self.uses = user, password, algorithm, uses
        self.fields = {"realm": 'a "realm", of=tests', "qop": "auth", "opaque": "o1", "algorithm": algorithm, **more}
        self.nonces: dict[str, int] = {}
        self.seen: set[tuple[str, str]] = set()

    def __call__(self, request: Received) -> Answer:
        found = Authorization.from_header(request.headers.get("authorization"))
        if found is None or found.type != "digest" or found.parameters.get("nonce") not in self.nonces:
            return self.ask()
        given = found.parameters
        nonce = given["nonce"] or ""
        if self.nonces[nonce] <= 0:
            return self.ask(stale="true")
        self.nonces[nonce] -= 1
        number = given.get("nc") or "none"
        assert (nonce, number) not in self.seen or number == "none"
        self.seen.add((nonce, number))
        assert given["uri"] == request.path
        assert given["realm"] == self.fields["realm"]
        assert given["opaque"] == "o1"
        return Answer(200) if given["response"] == self.expected(request, given) else self.ask()

    def expected(self, request: Received, given: Any) -> str:
        def digest(text: str) -> str:
            return hashlib.new("md5" if "MD5" in self.algorithm else "sha256", text.encode()).hexdigest()

        first = digest(f"{self.user}:{self.fields['realm']}:{self.password}")
        second = digest(f"{request.method}:{request.path}")
        middle = f"{given['nonce']}:{given['nc']}:{given['cnonce']}:auth" if "qop" in given else given["nonce"]
        return digest(f"{first}:{middle}:{second}")

    def ask(self, **more: str) -> Answer:
        nonce = f"n{len(self.nonces)}=="
        self.nonces[nonce] = self.uses
        fields = {name: value for name, value in {**self.fields, "nonce": nonce, **more}.items() if value}
        asked = WWWAuthenticate("digest", fields).to_header()
        return Answer(401, headers={"WWW-Authenticate": f'Basic realm="x, y", {asked}'})


@pytest.mark.parametrize(
    ("algorithm", "qop"),
    [
        ("MD5", "auth"),
        ("MD5", ""),
        ("SHA-256", "auth"),
        ("SHA-256", ""),
    ],
)
def test_digest(server: HttpStandIn, algorithm: str, qop: str) -> None:
    server.respond = DigestChecker("ada", "s3cret", algorithm=algorithm, qop=qop)
    with Client(server.url, auth=Digest("ada", "s3cret")) as client:
        for _ in range(3):
            assert client.get("a b/ü", {"q": "a b", "r": 'x"y'}).status == 200
    assert len(server.requests) == 4
    peer = requests.auth.HTTPDigestAuth("ada", "s3cret")  # the checker is right, if another client says so, too
    assert requests.get(f"{server.url}/me", auth=peer).status_code == 200


def test_a_nonce_that_is_used_up_is_replaced(server: HttpStandIn) -> None:
    server.respond = DigestChecker("ada", "s3cret", uses=2)
    with Client(server.url, auth=Digest("ada", "s3cret")) as client:
        assert [client.get("me").status for _ in range(5)] == [200] * 5
    assert len(server.requests) == 8


def test_a_wrong_password_ends_after_two_requests(server: HttpStandIn) -> None:
    server.respond = DigestChecker("ada", "s3cret")
    with Client(server.url, auth=Digest("ada", "wr0ng-password"), policy=ONCE) as client:
        with pytest.raises(HttpError, match="401") as caught:
            client.get("me")
    assert len(server.requests) == 2
    assert "wr0ng" not in str(caught.value)


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ("", "does not ask for HTTP Digest"),
        ('Basic realm="x"', "does not ask for HTTP Digest"),
        ('Digest realm="x", nonce="n", algorithm=MD5-sess', "not supported"),
        ('Digest realm="x", nonce="n", algorithm=SHA3-512', "a kind of HTTP Digest that is not supported"),
        ('Digest realm="x", nonce="n", qop="auth-int"', "not supported"),
        ('Digest realm="x"', "not supported"),
        ("Digest " + 'a="\\' * 5000, "HTTP Digest"),
    ],
)
def test_challenges_that_cannot_be_met(server: HttpStandIn, asked: str, reason: str) -> None:
    server.respond = lambda request: Answer(401, headers={"WWW-Authenticate": asked})
    with Client(server.url, auth=Digest("ada", "s3cret"), policy=ONCE) as client:
        with pytest.raises(SourceError, match=reason):
            client.get("me")


def test_the_examples_of_rfc_7616(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "balog.tap.credentials.digest.token_hex", lambda size: "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"
    )
    for algorithm, expected in (
        ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
        ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
    ):
        auth = Digest("Mufasa", "Circle of Life")
        request = Request("GET", "http://www.example.org/dir/index.html", {}, None)
        asked = (
            f'Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm={algorithm}, '
            'nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", '
            'opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"'
        )
        assert auth.rejected(request, 401, {"www-authenticate": asked})
        assert f'response="{expected}"' in auth.sign(request).headers["Authorization"]


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet='Digest abc=",\\ \t', max_size=60))
def test_no_challenge_breaks_the_parser(text: str) -> None:
    with suppress(SourceError):
        assert all(isinstance(value, str) for value in _best(f"Digest {text}, Digest nonce=n, {text}").values())


# -- certificates -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with an authority, a client's certificate of it, and keys with and without a password."""
    folder = tmp_path_factory.mktemp("certificates")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    own = authority.issue_cert("tap@example.com")
    own.cert_chain_pems[0].write_to_path(str(folder / "cert.pem"))
    own.private_key_pem.write_to_path(str(folder / "key.pem"))
    own.private_key_and_cert_chain_pem.write_to_path(str(folder / "both.pem"))
    key = serialization.load_pem_private_key(own.private_key_pem.bytes(), None)
    locked = serialization.BestAvailableEncryption(b"key-s3cret")
    form = serialization.PrivateFormat.PKCS8
    (folder / "locked.pem").write_bytes(key.private_bytes(serialization.Encoding.PEM, form, locked))
    trustme.CA().issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(str(folder / "other.pem"))
    authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(str(folder / "server.pem"))
    return folder


@pytest.fixture
def strict(files: Path) -> Iterator[HttpStandIn]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(files / "ca.pem"))
    context.load_cert_chain(str(files / "server.pem"))
    context.verify_mode = ssl.CERT_REQUIRED
    with HttpStandIn(tls=context) as server:
        yield server


def certificate(files: Path, cert: str, key: str = "", password: str = "") -> ClientCertificate:
    return ClientCertificate(str(files / cert), str(files / key) if key else "", password)


@pytest.mark.parametrize("given", [("both.pem",), ("cert.pem", "key.pem"), ("cert.pem", "locked.pem", "key-s3cret")])
def test_mutual_tls(strict: HttpStandIn, files: Path, given: tuple[str, ...]) -> None:
    with Client(strict.url, ca_file=str(files / "ca.pem"), certificate=certificate(files, *given)) as client:
        assert client.get("me").status == 200
    assert "s3cret" not in repr(certificate(files, *given))


@pytest.mark.parametrize("given", [None, ("other.pem",)])
def test_mutual_tls_without_the_right_certificate(
    strict: HttpStandIn, files: Path, given: tuple[str, ...] | None
) -> None:
    own = certificate(files, *given) if given else None
    with Client(strict.url, ca_file=str(files / "ca.pem"), certificate=own, policy=ONCE) as client:
        with pytest.raises(SourceError, match="no response"):
            client.get("me")
    assert strict.requests == []


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (("none.pem",), "none.pem: cannot be read: No such file"),
        (("cert.pem", "none.pem"), "none.pem: cannot be read"),
        (("cert.pem",), "no certificate with its private key"),
        (("cert.pem", "locked.pem"), "has the key a password"),
        (("cert.pem", "locked.pem", "wr0ng-one"), "is its password right"),
        (("cert.pem", "other.pem"), "or is it another's"),
        (("ca.pem", "ca.pem"), "no certificate with its private key"),
    ],
)
def test_certificates_that_cannot_be_used(
    files: Path, given: tuple[str, ...], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())  # nobody is asked for a password
    with pytest.raises(ConfigError, match=reason) as caught:
        Client("https://localhost", certificate=certificate(files, *given))
    assert str(caught.value).startswith("certificate: ")
    assert "wr0ng" not in str(caught.value)
