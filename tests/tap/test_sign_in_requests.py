"""Sign-ins that change a request: keys, signatures, certificates."""

import io
import logging
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from balog.common.errors import ConfigError
from balog.tap.credentials import (
    Bearer,
    ClientCertificate,
    QueryKey,
    cookie,
    header,
    once,
    periodic,
    query,
)
from balog.tap.errors import SourceError, TapError
from balog.tap.http import Client, HttpError, Policy
from balog.testing import capture_events
from tests.stand_ins.http_server import Answer, HttpStandIn

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


@pytest.mark.parametrize("kind", [once, periodic])
def test_headers_of_a_credential_that_are_rejected_are_fetched_again(server: HttpStandIn, kind: Any) -> None:
    keys = iter(["old", "new"])
    server.respond = lambda request: Answer(200 if request.headers["x-key"] == "new" else 401)
    with Client(server.url, auth=kind(lambda: {"X-Key": next(keys)})) as client:
        assert client.get("me").status == 200


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


@pytest.mark.parametrize(
    ("options", "reason"),
    [({"ca_file": ""}, "ca_file: expected the path"), ({"certificate": "x.pem"}, "certificate: expected ClientCert")],
)
def test_certificates_of_another_form_are_refused(options: Any, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        Client("https://api.example.com", **options)
