import gzip
import json
import select
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
import trustme

from balog.common.errors import ConfigError
from balog.common.token_bucket import TokenBucket
from balog.tap.credentials import cookie
from balog.tap.errors import SourceError
from balog.tap.http import Client, HttpError, Policy, Response
from balog.tap.http.connections import Connections, Request
from balog.testing import capture_events
from tests.stand_ins.http_server import Answer, HttpStandIn

JSON = {"Content-Type": "application/json"}
AT_ONCE = Policy(tries=4, sleep=lambda seconds: None)


@pytest.fixture
def client(server: HttpStandIn) -> Iterator[Client]:
    with Client(f"{server.url}/v2", policy=AT_ONCE, timeout=10) as client:
        yield client


def answer(value: Any, **headers: str) -> Answer:
    return Answer(200, json.dumps(value).encode(), {**JSON, **headers})


def test_an_answer_is_decoded(server: HttpStandIn, client: Client) -> None:
    server.will(answer([{"id": 1}]), answer([{"id": 2, "name": "x"}]))
    assert client.get("contacts").json() == [{"id": 1}]
    assert client.get("/contacts").json() == [{"id": 2, "name": "x"}]
    assert [request.path for request in server.requests] == ["/v2/contacts", "/v2/contacts"]


def test_connections_are_kept(server: HttpStandIn, client: Client) -> None:
    for _ in range(5):
        client.get("contacts")
    assert server.connections == 1


def test_the_query_is_written_as_apis_read_it(server: HttpStandIn, client: Client) -> None:
    when = datetime(2026, 11, 20, tzinfo=timezone.utc)
    client.get("contacts", {"since": when, "tag": ["a b", "c"], "all": True, "none": None, "limit": 100})
    assert server.requests[0].path == (
        "/v2/contacts?since=2026-11-20T00%3A00%3A00%2B00%3A00&tag=a+b&tag=c&all=true&limit=100"
    )


def test_bodies_as_json_and_as_forms(server: HttpStandIn, client: Client) -> None:
    client.post("search", json={"q": "x"})
    client.post("search", form={"q": "x y"})
    assert [(request.headers["content-type"], request.body) for request in server.requests] == [
        ("application/json", b'{"q":"x"}'),
        ("application/x-www-form-urlencoded", b"q=x+y"),
    ]


def test_passing_troubles_are_tried_again(server: HttpStandIn, client: Client) -> None:
    server.will(Answer(503), Answer(trouble="reset"), Answer(429), answer("done"))
    assert client.get("contacts").json() == "done"


def test_troubles_that_do_not_pass_come_out(server: HttpStandIn, client: Client) -> None:
    server.respond = lambda request: Answer(500, b"out of order")
    with pytest.raises(HttpError, match=r"^GET /v2/contacts answered 500 Internal Server Error: out of order$"):
        client.get("contacts")
    assert len(server.requests) == 4


def test_what_is_wrong_with_the_request_is_asked_once(server: HttpStandIn, client: Client) -> None:
    server.respond = lambda request: Answer(404)
    with pytest.raises(HttpError) as caught:
        client.get("contacts/1")
    assert caught.value.status == 404
    assert len(server.requests) == 1


def test_a_status_that_is_allowed_is_given_back(server: HttpStandIn, client: Client) -> None:
    server.will(Answer(404))
    assert client.get("contacts/1", allow=(404,)).status == 404


def test_a_post_is_tried_again_only_where_nothing_was_done(server: HttpStandIn, client: Client) -> None:
    server.will(Answer(429), Answer(503), Answer(500))
    with pytest.raises(HttpError, match="500"):
        client.post("jobs")
    assert len(server.requests) == 3
    server.will(Answer(trouble="reset"))
    with pytest.raises(SourceError, match="no response"):
        client.post("jobs")
    assert len(server.requests) == 4
    server.will(Answer(500))
    assert client.post("search", is_repeatable=True).status == 200


def test_a_post_whose_authorization_fails_is_tried_again(server: HttpStandIn) -> None:
    headers = iter([ConnectionResetError(), {"X-Key": "k"}])

    def auth() -> Mapping[str, str]:
        granted = next(headers)
        if isinstance(granted, Exception):
            raise granted
        return granted

    with Client(server.url, auth=auth, policy=AT_ONCE) as client:
        assert client.post("jobs").status == 200
    assert len(server.requests) == 1


def test_a_server_that_is_not_there_is_told_without_the_query(client: Client, server: HttpStandIn) -> None:
    server.stop()
    with pytest.raises(SourceError) as caught:
        client.get("contacts", {"token": "s3cret"})
    assert str(caught.value) == f"GET /v2/contacts: no response from {server.url}: Connection refused"


def test_a_path_with_spaces_and_other_alphabets_is_encoded(server: HttpStandIn, client: Client) -> None:
    client.get("customers/Müller & Söhne/a%2Fb", {"q": "ü"})
    assert server.requests[0].path == "/v2/customers/M%C3%BCller%20&%20S%C3%B6hne/a%2Fb?q=%C3%BC"


def test_the_warning_of_a_retry_names_the_cause(server: HttpStandIn) -> None:
    server.respond = lambda request: Answer(trouble="hang")
    with capture_events() as events:
        with Client(server.url, policy=Policy(tries=2, sleep=lambda seconds: None), timeout=0.1) as client:
            with pytest.raises(SourceError, match="TimeoutError"):
                client.get("contacts")
    (warning,) = [event for event in events if event.level == "WARNING"]
    assert warning.payload["fields"]["fault"] == "TimeoutError"
    assert warning.payload["message"].startswith("/contacts: TimeoutError; trying again")


@pytest.mark.parametrize("headers", [{}, {"Content-Encoding": "gzip"}])
def test_an_answer_that_breaks_off_is_asked_for_again(
    server: HttpStandIn, client: Client, headers: dict[str, str]
) -> None:
    body = json.dumps(list(range(10_000))).encode()
    packed = gzip.compress(body) if headers else body
    server.will(Answer(200, packed, headers, trouble="half"), Answer(200, packed, headers))
    assert client.get("numbers").json() == list(range(10_000))
    assert len(server.requests) == 2


def test_a_packed_body_is_unpacked(server: HttpStandIn, client: Client) -> None:
    server.will(Answer(200, gzip.compress(b'{"id":1}'), {"Content-Encoding": "gzip"}))
    assert client.get("contacts").json() == {"id": 1}
    assert server.requests[0].headers["accept-encoding"] == "gzip"


@pytest.mark.parametrize("is_packed", [False, True])
def test_an_answer_that_is_too_large_is_refused_before_it_is_held(server: HttpStandIn, is_packed: bool) -> None:
    body = b"0" * 50_000_000
    headers = {"Content-Encoding": "gzip"} if is_packed else {}
    server.respond = lambda request: Answer(200, gzip.compress(body, 1) if is_packed else body, headers)
    with Client(server.url, max_bytes=100_000) as client:
        with pytest.raises(SourceError, match="larger than 100000 bytes"):
            client.get("contacts")
    assert len(server.requests) == 1


def test_what_is_no_json_says_what_came_instead(server: HttpStandIn, client: Client) -> None:
    server.will(Answer(200, b"<html>", {"Content-Type": "text/html"}))
    with pytest.raises(SourceError, match=r"/v2/contacts answered 200 without JSON in UTF-8 \(text/html, 6 bytes\)"):
        client.get("contacts").json()


@pytest.mark.parametrize("charset", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "iso-8859-1", "cp1252"])
@pytest.mark.parametrize("is_declared", [True, False])
def test_json_in_any_charset_and_with_a_byte_order_mark(
    server: HttpStandIn, client: Client, charset: str, is_declared: bool
) -> None:
    kind = f"application/json; charset={charset.removesuffix('-sig')}" if is_declared else "application/json"
    server.will(Answer(200, '{"name": "Zoë £1.10"}'.encode(charset), {"Content-Type": kind}))
    if charset in ("iso-8859-1", "cp1252") and not is_declared:
        with pytest.raises(SourceError, match="without JSON in UTF-8"):
            client.get("contacts").json()
    else:
        assert client.get("contacts").json() == {"name": "Zoë £1.10"}


@pytest.mark.parametrize("charset", ["us-ascii", "iso-2022-jp", "none", "punycode", "undefined", "hex"])
def test_json_in_utf_8_whatever_wrong_charset_is_declared(charset: str) -> None:
    kind = f"application/json; charset={charset}"
    assert Response(200, {"content-type": kind}, '["ä"]'.encode(), "http://x").json() == ["ä"]


def test_a_number_is_sent_back_with_its_digits(server: HttpStandIn, client: Client) -> None:
    server.will(Answer(200, b'{"cursor": 1234567890123456789.10}', JSON))
    cursor = client.get("contacts").json()["cursor"]
    client.post("contacts", {"after": cursor}, json={"after": cursor})
    assert server.requests[1].path == "/v2/contacts?after=1234567890123456789.10"
    assert server.requests[1].body == b'{"after":1234567890123456789.10}'


def test_cookies_are_kept_for_their_paths_and_not_beyond_their_time(server: HttpStandIn, client: Client) -> None:
    for set_cookie in (
        "session=secret1; Path=/; HttpOnly",
        "here=secret2; Path=/v2/here",
        "tls=secret3; Secure",
        "foreign=secret4; Domain=example.com",
        "old=secret5; Max-Age=0",
    ):
        server.will(answer(1, **{"Set-Cookie": set_cookie}))
        client.get("login")
    client.get("here/x")
    client.get("contacts")
    here, contacts = (request.headers["cookie"] for request in server.requests[-2:])
    assert (here, contacts) == ("here=secret2; session=secret1", "session=secret1")
    server.will(Answer(400, b"unknown session=secret1"))
    with pytest.raises(HttpError, match=r"unknown session=…$"):
        client.get("contacts")
    server.will(answer(1, **{"Set-Cookie": "session=; Max-Age=0; Path=/"}))
    client.get("logout")
    client.get("contacts")
    assert server.requests[-1].headers["cookie"] is None


def test_a_cookie_of_the_tap_goes_before_those_of_the_server(server: HttpStandIn) -> None:
    with Client(server.url, auth=cookie("key", "k1"), policy=AT_ONCE) as client:
        server.will(answer(1, **{"Set-Cookie": "session=s1; Path=/"}))
        client.get("login")
        client.get("contacts")
    assert [request.headers["cookie"] for request in server.requests] == ["key=k1", "key=k1; session=s1"]


def test_cookies_go_to_no_other_server_and_into_downloads(server: HttpStandIn, client: Client, tmp_path: Path) -> None:
    server.will(answer(1, **{"Set-Cookie": "session=secret1; Path=/"}))
    client.get("login")
    with HttpStandIn() as other, Client(other.url, policy=AT_ONCE) as another:
        another.get("contacts")
        with pytest.raises(SourceError, match="must not get these credentials"):
            client.get(f"{other.url}/contacts")
        assert [request.headers["cookie"] for request in other.requests] == [None]
    with (tmp_path / "file").open("wb") as file:
        client.download("export", file)
    assert server.requests[-1].headers["cookie"] == "session=secret1"


def test_text_in_the_charset_of_the_answer() -> None:
    assert Response(200, {"content-type": "text/plain; charset=latin-1"}, b"\xe4", "http://x").text == "ä"
    assert Response(200, {"content-type": "text/plain; charset=none"}, "ä".encode(), "http://x").text == "ä"


def test_credentials_never_go_to_another_server(server: HttpStandIn) -> None:
    with HttpStandIn() as other, Client(server.url, auth=lambda: {"Authorization": "Bearer s3cret"}) as client:
        server.will(Answer(302, headers={"Location": f"{other.url}/contacts"}))
        with pytest.raises(SourceError, match="redirects away from"):
            client.get("contacts")
        with pytest.raises(SourceError, match="the URL leads away from"):
            client.get(f"{other.url}/contacts?page=2")
        with pytest.raises(SourceError, match="leads away"):
            client.get(f"//127.0.0.1:{other.port}/contacts")
        assert other.requests == []


def test_redirects_in_a_circle_end(server: HttpStandIn, client: Client) -> None:
    server.respond = lambda request: Answer(302, headers={"Location": request.path})
    with pytest.raises(SourceError, match="redirects more than 5 times"):
        client.get("contacts")


class Token:
    """Credentials that know how to become new ones."""

    def __init__(self) -> None:
        self.number = 1
        self.refreshed: list[str] = []

    def sign(self, request: Request) -> Request:
        return request._replace(headers={**request.headers, "Authorization": f"Bearer token-{self.number}"})

    def rejected(self, request: Request, status: int, headers: Mapping[str, str]) -> bool:
        self.refreshed.append(request.headers["Authorization"])
        self.number += 1
        return status == 401


def test_an_unauthorized_refreshes_once(server: HttpStandIn) -> None:
    token = Token()
    server.will(Answer(401), answer("in"))
    with Client(server.url, auth=token) as client:
        assert client.get("contacts").json() == "in"
        server.respond = lambda request: Answer(401)
        with pytest.raises(HttpError, match="401 Unauthorized"):
            client.get("contacts")
    assert token.refreshed == [f"Bearer token-{n}" for n in (1, 2)]
    assert len(server.requests) == 4


def test_an_error_never_says_back_what_was_sent(server: HttpStandIn) -> None:
    server.respond = lambda request: Answer(403, f"no {request.headers['authorization']} {request.path}".encode())
    with Client(server.url, auth=lambda: {"Authorization": "Bearer s3cret-token"}) as client:
        with pytest.raises(HttpError) as caught:
            client.get("contacts", {"key": "k3y-of-mine"})
    assert "s3cret" not in str(caught.value)
    assert "k3y" not in str(caught.value)
    assert "403 Forbidden: no … /contacts?key=…" in str(caught.value)
    assert "s3cret" not in repr(client)


def test_each_request_is_timed_with_its_endpoint_and_status(server: HttpStandIn, client: Client) -> None:
    server.will(Answer(503), answer(1))
    with capture_events() as captured:
        client.get("contacts/17")
    points = [event.payload for event in captured if event.payload.get("metric") == "http_request_duration"]
    assert [point["tags"] for point in points] == [
        {"endpoint": "/v2/contacts/{id}", "http_status_code": 503, "status": "failed"},
        {"endpoint": "/v2/contacts/{id}", "http_status_code": 200, "status": "succeeded"},
    ]


def test_requests_keep_to_the_rate_and_no_turn_passes_while_the_first_connection_is_set_up(
    server: HttpStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    opened, take = Connections._open, TokenBucket.take
    monkeypatch.setattr(Connections, "_open", lambda self: steps.append("open") or opened(self))
    monkeypatch.setattr(TokenBucket, "take", lambda self: steps.append("turn") or take(self))
    monkeypatch.setattr("balog.tap.http.client.pause", lambda seconds: steps.append("wait" if seconds > 50 else ""))
    with Client(server.url, rate=0.01) as client:
        client.get()
        client.get()
    assert steps == ["open", "turn", "turn", "wait"]


@pytest.mark.parametrize(
    "url",
    ["api.example.com", "ftp://x", "https://", "https://me:pw@x", "https://x/?key=1", "https://x/ y", "http://x:99999"],
)
def test_a_base_url_that_cannot_be_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="base_url"):
        Client(url)


@pytest.mark.parametrize("options", [{"headers": {"X": "a\r\nEvil: 1"}}, {"headers": {"X\r\nEvil": "1"}}])
def test_headers_cannot_be_smuggled(server: HttpStandIn, client: Client, options: dict[str, Any]) -> None:
    with pytest.raises(SourceError, match="ValueError"):
        client.get("contacts", **options)
    assert server.requests == []


def _dribble(pieces: list[bytes], seconds: float = 0.05) -> Iterator[str]:
    """A server that answers in pieces, for ever with the last one."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with suppress(OSError):
                connection, _ = listening.accept()
                with connection:
                    connection.recv(65536)
                    for piece in pieces[:-1]:
                        connection.sendall(piece)
                    while True:
                        connection.sendall(pieces[-1])
                        time.sleep(seconds)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        thread.join(10)
        assert not thread.is_alive()


@pytest.mark.parametrize(
    "pieces",
    [
        [b"HTTP/1.1 200 OK\r\nX: ", b"x"],
        [b"HTTP/1.1 200 OK\r\n\r\n", b"x"],
        [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"x"],
    ],
    ids=["header", "body", "chunk"],
)
def test_an_answer_that_comes_in_drops_ends_in_time(pieces: list[bytes]) -> None:
    for url in _dribble(pieces):
        began = time.monotonic()
        with Client(url, policy=Policy(tries=1), timeout=5, max_seconds=0.2) as client:
            with pytest.raises(SourceError, match=r"took longer than 0\.2 s") as caught:
                client.get("contacts")
        assert caught.value.retryable
        assert time.monotonic() - began < 3


def test_a_packed_body_of_several_members_is_whole(server: HttpStandIn, client: Client) -> None:
    packed = b"".join(gzip.compress(piece) for piece in (b"[1", b",2", b"]")) + b"\0" * 8
    server.will(Answer(200, packed, {"Content-Encoding": "gzip"}))
    assert client.get("contacts").json() == [1, 2]
    for damaged, reason in ((packed[:-20], r"ended \d+ bytes early|is incomplete"), (b"no gzip", "damaged")):
        server.respond = lambda request, body=damaged: Answer(200, body, {"Content-Encoding": "gzip"})  # type: ignore[misc]
        with pytest.raises(SourceError, match=reason):
            client.get("contacts")


def test_a_connection_that_the_server_closed_meanwhile_is_not_used(server: HttpStandIn, client: Client) -> None:
    client.post("jobs")
    server.stop()
    server.start()
    assert client.post("jobs").status == 200  # sent once, on a new one


def test_a_kept_connection_that_closes_under_a_request_is_no_failed_try(server: HttpStandIn) -> None:
    """Given a server that closes a kept connection when the next request comes, then only a safe one is sent again."""
    server.will(Answer(), Answer(trouble="close"), Answer(), Answer(trouble="close"))
    with Client(server.url, policy=Policy(tries=1), timeout=10) as client:
        assert [client.get("a").status, client.get("b").status] == [200, 200]
        with pytest.raises(SourceError, match="no response"):
            client.post("jobs")
    assert [request.path for request in server.requests] == ["/a", "/b", "/b", "/jobs"]


@pytest.mark.parametrize("said", ["http://[", "//[x", "http://x:port/"])
def test_a_redirect_or_next_page_to_no_url(server: HttpStandIn, client: Client, said: str) -> None:
    server.respond = lambda request: Answer(302, headers={"Location": said})
    with pytest.raises(SourceError, match=r"redirects (away|to an invalid URL)"):
        client.get("contacts")
    with pytest.raises(SourceError, match=r"leads (away|to an invalid URL)"):
        client.get(said)


def test_an_ipv6_address_without_a_port_is_asked_at_the_scheme_s() -> None:
    pool = Connections("http://[::1]/v2", 1, 1, 1, None)._open().connection_from_url("http://[::1]/v2")
    assert (pool.host, pool.port) == ("::1", 80)


@pytest.mark.parametrize("charset", ["idna", "undefined", "a\0b"])
def test_a_charset_that_is_none_for_texts(charset: str) -> None:
    assert Response(200, {"content-type": f"text/plain; charset={charset}"}, b"\xffa.b", "http://x").text.endswith(
        "a.b"
    )


def tls_of(host: str, folder: Path) -> tuple[ssl.SSLContext, str]:
    """Return a server's context for a host, and the file of the authority that issued its certificate."""
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(host).configure_cert(context)
    authority.cert_pem.write_to_path(folder / "ca.pem")
    return context, str(folder / "ca.pem")


def test_https_goes_through_the_environment_s_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context, ca_file = tls_of("api.example.com", tmp_path)
    for name in ("http_proxy", "HTTP_PROXY", "HTTPS_PROXY", "no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    asked: list[bytes] = []
    with (
        HttpStandIn(lambda request: answer(request.path), tls=context) as server,
        socket.create_server(("127.0.0.1", 0)) as listening,
    ):

        def serve() -> None:
            connection, _ = listening.accept()
            with connection, socket.create_connection(("127.0.0.1", server.port)) as there:
                asked.append(connection.recv(65536))
                connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                ends = {connection: there, there: connection}
                while True:
                    for end in select.select(list(ends), [], [], 10)[0]:
                        data = end.recv(65536)
                        if not data:
                            return
                        ends[end].sendall(data)

        thread = threading.Thread(target=serve)
        thread.start()
        monkeypatch.setenv("https_proxy", f"http://me:s3cret@127.0.0.1:{listening.getsockname()[1]}")
        with Client("https://api.example.com/v2", ca_file=ca_file, timeout=10) as client:
            assert [client.get(name).json() for name in ("a", "b")] == ["/v2/a", "/v2/b"]
        thread.join(10)
    (connect,) = asked
    assert connect.startswith(b"CONNECT api.example.com:443 HTTP/1.")
    assert b"Proxy-Authorization: Basic bWU6czNjcmV0\r\n" in connect
    assert "proxy-authorization" not in server.requests[0].headers


@pytest.mark.parametrize(
    "sent", [{"form": {"refresh": "s3cret+token"}}, {"json": {"a": [{"refresh": "s3cret+token"}]}}]
)
def test_an_error_never_says_back_what_was_in_the_body(
    server: HttpStandIn, client: Client, sent: dict[str, Any]
) -> None:
    server.respond = lambda request: Answer(400, b"refused refresh: " + request.body)
    with pytest.raises(HttpError, match="refused refresh: ") as caught:
        client.post("token", **sent)
    assert "s3cret" not in str(caught.value)


def test_threads_share_a_client(server: HttpStandIn, client: Client) -> None:
    server.respond = lambda request: answer(request.path)
    with ThreadPoolExecutor(5) as pool:
        found = list(pool.map(lambda number: client.get(f"n/{number}").json(), range(50)))
    assert found == [f"/v2/n/{number}" for number in range(50)]
    assert server.connections <= 5


def test_certificates_are_verified(tmp_path: Path) -> None:
    context, ca_file = tls_of("localhost", tmp_path)
    with HttpStandIn(lambda request: answer("safe"), tls=context) as server:
        with Client(server.url, ca_file=ca_file) as client:
            assert client.get().json() == "safe"
        with Client(server.url, policy=AT_ONCE) as client, pytest.raises(SourceError, match="no response") as caught:
            client.get()
        assert not caught.value.retryable
