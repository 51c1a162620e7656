"""The HTTP client of the sinks: what it sends, what it refuses, and how each failure reads."""

import gzip
import zlib
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.common.backoff import read_retry_after
from balog.common.errors import ConfigError
from balog.common.http import HttpClient, HttpStatusError, check_url
from balog.sinks.base import SinkError
from tests.stand_ins.http_server import Answer

KEY = "k3y-of-the-house"


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def clients():
    made = []

    def make(url, **options):
        options.setdefault("timeout", 5.0)
        made.append(HttpClient(url, **options))
        return made[-1]

    yield make
    for client in made:
        client.close()


def refused(client, path="/in"):
    with pytest.raises(SinkError) as caught:
        client.post(path, b"{}")
    message = str(caught.value)
    assert "\n" not in message
    assert KEY not in message
    return caught.value


class TestSending:
    def test_a_body_arrives_with_its_headers_over_one_connection(self, http_server, clients):
        http_server.will(Answer(202, b"taken"))
        client = clients(http_server.url + "/base/", headers={"Authorization": f"Bearer {KEY}"})
        answer = client.post("/in?x=1", b'{"a":1}', headers={"X-Once": "1"})
        client.post("/in", b"{}", "application/x-ndjson")
        first, second = http_server.requests
        assert (answer.status, answer.body) == (202, b"taken")
        assert (first.method, first.path, first.body) == ("POST", "/base/in?x=1", b'{"a":1}')
        assert first.headers["Authorization"] == f"Bearer {KEY}"
        assert (first.headers["Content-Type"], first.headers["X-Once"]) == ("application/json", "1")
        assert first.headers["User-Agent"] == "balog"
        assert (second.headers["Content-Type"], second.headers["X-Once"]) == ("application/x-ndjson", None)
        assert http_server.connections == 1

    def test_without_a_path_the_url_is_taken_as_it_is(self, http_server, clients):
        clients(http_server.url + "/hook/?key=1").post("", b"{}")
        assert http_server.requests[0].path == "/hook/?key=1"

    def test_bodies_go_compressed_when_asked(self, http_server, clients):
        clients(http_server.url, is_gzipped=True).post("/in", b"a" * 10_000)
        request = http_server.requests[0]
        assert request.headers["Content-Encoding"] == "gzip"
        assert int(request.headers["Content-Length"]) < 200
        assert request.body == b"a" * 10_000

    def test_a_kept_connection_that_the_server_closed_is_opened_again(self, http_server, clients):
        client = clients(http_server.url)
        client.post("/in", b"1")
        http_server.stop()
        http_server.start()
        client.post("/in", b"2")
        assert [request.body for request in http_server.requests] == [b"1", b"2"]


class TestNoAnswer:
    def test_a_server_that_is_down_is_named(self, http_server, clients):
        http_server.stop()
        error = refused(clients(http_server.url + f"/{KEY}", headers={"Key": KEY}))
        assert str(error) == f"{http_server.url}: cannot connect: Connection refused"
        assert error.retryable

    @pytest.mark.parametrize(
        ("trouble", "said"),
        [
            ("hang", "no answer in time"),
            ("reset", "the connection broke: Connection reset by peer"),
            ("close", "the connection broke"),
            ("half", "the connection broke"),
            ("status", "the connection broke"),
            ("header", "the connection broke"),
        ],
    )
    def test_a_server_that_breaks_off_is_tried_again(self, http_server, clients, trouble, said):
        http_server.will(Answer(body=b"x" * 100_000, trouble=trouble), Answer(body=b"fine"))
        client = clients(http_server.url, headers={"Key": KEY}, timeout=0.3 if trouble == "hang" else 5.0)
        error = refused(client, f"/{KEY}")
        assert str(error) == f"{http_server.url}: {said}"
        assert error.retryable
        assert client.post("/in", b"{}").body == b"fine"

    def test_a_name_that_nobody_knows(self, clients):
        error = refused(clients("http://no-such-host.invalid:8080"))
        assert str(error).startswith("http://no-such-host.invalid:8080: cannot connect: ")
        assert error.retryable


class TestOtherStatuses:
    @pytest.mark.parametrize("status", [401, 403, 404, 408, 409, 410, 425, 429, 500, 502, 503, 504])
    def test_what_is_wrong_with_the_server_or_the_key_is_retryable(self, http_server, clients, status):
        http_server.will(Answer(status))
        assert refused(clients(http_server.url)).retryable

    @pytest.mark.parametrize("status", [400, 413, 415, 422])
    def test_what_is_wrong_with_the_events_is_not(self, http_server, clients, status):
        http_server.will(Answer(status))
        assert not refused(clients(http_server.url)).retryable

    def test_the_error_has_the_status_and_what_the_server_says_in_one_line(self, http_server, clients):
        said = b"<html>\r\n  Too\tbusy \x1b[31m\0\xff " + b"x" * 5000
        http_server.will(Answer(503, said))
        error = refused(clients(http_server.url))
        assert str(error).startswith(f"{http_server.url} answered 503 Service Unavailable: <html> Too busy [31m � xxx")
        assert len(str(error)) < 300
        assert isinstance(error, HttpStatusError)
        assert (error.answer.status, error.answer.body) == (503, said)

    def test_a_redirect_is_an_error(self, http_server, clients):
        http_server.will(Answer(307, headers={"Location": f"{http_server.url}/else?key={KEY}"}))
        error = refused(clients(http_server.url))
        assert "a redirect, which is not followed" in str(error)
        assert len(http_server.requests) == 1

    def test_retry_after_is_handed_on(self, http_server, clients):
        later = format_datetime(datetime.now(timezone.utc) + timedelta(seconds=600), usegmt=True)
        http_server.will(Answer(429, headers={"Retry-After": "7"}), Answer(503, headers={"Retry-After": later}))
        client = clients(http_server.url)
        assert refused(client).retry_after == 7
        assert 500 < refused(client).retry_after <= 600

    def test_secrets_that_the_server_says_back_are_not_said_on(self, http_server, clients):
        http_server.respond = lambda request: Answer(403, f"{request.path} {request.headers}".encode())
        long = "hooks-path-0123456789"
        client = clients(f"{http_server.url}/{long}/x?token=p4ss", headers={"Authorization": f"ApiKey {KEY}"})
        said = str(refused(client, ""))
        assert "ApiKey" not in said
        assert long not in said
        assert "p4ss" not in said
        assert "User-Agent: balog" in said


class TestAnswers:
    @pytest.mark.parametrize("pack", [gzip.compress, zlib.compress])
    def test_a_bomb_is_unpacked_up_to_a_bound(self, http_server, clients, pack):
        bomb = pack(b"\0" * (64 << 20))
        http_server.will(Answer(200, bomb, {"Content-Encoding": "gzip" if pack is gzip.compress else "deflate"}))
        assert len(clients(http_server.url).post("/in", b"{}").body) == 16 << 20

    def test_an_endless_answer_is_read_up_to_a_bound_and_the_next_is_whole(self, http_server, clients):
        http_server.will(Answer(200, b"x" * (20 << 20)), Answer(200, b"next"))
        client = clients(http_server.url)
        assert len(client.post("/in", b"{}").body) == 16 << 20
        assert client.post("/in", b"{}").body == b"next"

    def test_what_is_not_what_its_encoding_says_stays_as_it_is(self, http_server, clients):
        http_server.will(Answer(200, b"plain", {"Content-Encoding": "gzip"}))
        assert clients(http_server.url).post("/in", b"{}").body == b"plain"

    def test_chunks_are_put_together_and_missing_ones_noticed(self, http_server, clients):
        chunked = {"Transfer-Encoding": "chunked", "Connection": "close"}
        http_server.will(Answer(200, b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", chunked), Answer(200, b"5\r\nabc", chunked))
        client = clients(http_server.url)
        assert client.post("/in", b"{}").body == b"abcde"
        assert str(refused(client)) == f"{http_server.url}: the connection broke"


class TestTls:
    def test_an_unknown_authority_is_refused(self, tls_server, clients):
        error = refused(clients(tls_server.server.url, headers={"Key": KEY}))
        assert "the certificate or TLS was refused" in str(error)
        assert error.retryable
        assert not tls_server.server.requests

    def test_an_authority_of_ones_own_is_trusted(self, tls_server, clients):
        assert clients(tls_server.server.url, ca_file=tls_server.ca_file).post("/in", b"{}").status == 200

    def test_another_hosts_certificate_is_refused(self, tls_server, clients):
        url = tls_server.server.url.replace("localhost", "127.0.0.1")
        refused(clients(url, ca_file=tls_server.ca_file))
        assert not tls_server.server.requests

    def test_a_plain_server_is_no_tls_server(self, http_server, clients):
        refused(clients(http_server.url.replace("http:", "https:")))

    @pytest.mark.parametrize("content", [None, b"", b"no certificate"])
    def test_a_ca_file_that_is_none_is_an_error_of_the_config(self, tmp_path, content):
        path = tmp_path / "ca.pem"
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(ConfigError) as caught:
            HttpClient("https://example.com", ca_file=str(path))
        assert caught.value.path == "ca_file"
        assert str(path) in str(caught.value)


class TestProxies:
    def test_the_environments_proxy_is_used_with_its_credentials(self, http_server, clients, monkeypatch):
        monkeypatch.setenv("http_proxy", http_server.url.replace("//", "//me:p%40ss@"))
        clients("http://example.com/base").post("/in", b"{}")
        assert http_server.requests[0].path == "http://example.com/base/in"
        assert http_server.requests[0].headers["Proxy-Authorization"] == "Basic bWU6cEBzcw=="

    def test_tls_goes_through_the_proxy(self, http_server, tls_server, clients, monkeypatch):
        """Given a proxy that refuses, then it was told no more than CONNECT, and the error names it."""
        monkeypatch.setenv("https_proxy", http_server.url.removeprefix("http://"))
        http_server.will(Answer(407))
        error = refused(clients("https://example.com", headers={"Key": KEY}))
        assert str(error).startswith("https://example.com: the proxy failed: Tunnel connection failed: 407")
        assert [(request.method, request.path) for request in http_server.requests] == [("CONNECT", "example.com:443")]
        assert KEY not in str(http_server.requests[0].headers)

    def test_a_proxy_may_itself_be_reached_by_tls(self, tls_server, clients, monkeypatch):
        monkeypatch.setenv("http_proxy", tls_server.server.url)
        monkeypatch.setenv("SSL_CERT_FILE", tls_server.ca_file)
        clients("http://example.com/base").post("/in", b"{}")
        assert tls_server.server.requests[0].path == "http://example.com/base/in"

    def test_no_proxy_is_kept_to(self, http_server, clients, monkeypatch):
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        assert clients(http_server.url).post("/in", b"{}").status == 200

    def test_a_dead_proxy_is_said_to_be_the_proxy(self, clients, monkeypatch):
        monkeypatch.setenv("all_proxy", "http://me:p4ss@127.0.0.1:1")
        assert str(refused(clients("http://example.com"))) == (
            "http://example.com: the proxy failed: Connection refused"
        )

    @pytest.mark.parametrize("proxy", ["socks5://me:p4ss@localhost:1080", "http://", "http://me:p4ss@host:port"])
    def test_a_proxy_that_is_none_is_an_error_of_the_config(self, proxy, monkeypatch):
        monkeypatch.setenv("all_proxy", proxy)
        with pytest.raises(ConfigError, match="proxy") as caught:
            HttpClient("http://example.com")
        assert "p4ss" not in str(caught.value)


class TestConfig:
    @pytest.mark.parametrize(
        "url",
        [
            "ftp://example.com",
            "example.com:9200",
            "http://",
            "http://[::1",
            "http://host:0",
            "http://host:99999",
            "https://user:pass@example.com",
            "https://example.com/a b",
            "https://example.com/\r\nHost: other",
            "https://größe.example",
            "https://example.com/#x",
        ],
    )
    def test_what_is_no_url_is_refused_without_showing_it(self, url):
        with pytest.raises(ConfigError) as caught:
            check_url(url)
        assert caught.value.path == "url"
        assert "pass" not in str(caught.value)

    @pytest.mark.parametrize("url", ["http://[::1]:9200", "https://example.com/a%20b?key=1", "HTTP://EXAMPLE.com"])
    def test_urls_are_taken(self, url):
        check_url(url)

    @pytest.mark.parametrize(("name", "value"), [("X", f"{KEY}\nY: 1"), ("X", f"{KEY}é"), ("X Y", KEY), ("", KEY)])
    def test_a_header_that_no_request_can_have_is_an_error_of_the_config(self, name, value):
        with pytest.raises(ConfigError) as caught:
            HttpClient("http://example.com", headers={name: value})
        assert KEY not in str(caught.value)


class TestRetryAfter:
    @pytest.mark.parametrize(
        ("value", "seconds"),
        [
            (None, None),
            ("", None),
            ("soon", None),
            ("nan", None),
            ("0", 0),
            ("1.5", 1.5),
            ("-3", 0),
            ("inf", 3600),
            ("999999", 3600),
            ("Wed, 21 Oct 2015 07:28:00 GMT", 0),
            ("Wed, 21 Oct 2015 07:28:00", 0),
            ("Fri, 31 Dec 9999 23:59:59 GMT", 3600),
        ],
    )
    def test_seconds_and_dates_are_read(self, value, seconds):
        assert read_retry_after(value, longest=3600.0) == seconds

    @given(st.text())
    def test_nothing_that_a_server_says_breaks_it(self, value):
        seconds = read_retry_after(value, longest=3600.0)
        assert seconds is None or 0 <= seconds <= 3600


class TestProbe:
    @pytest.mark.parametrize("status", [200, 204, 400, 404, 405, 501])
    def test_a_server_that_answers_is_there(self, http_server, clients, status):
        http_server.respond = lambda request: Answer(status, b"a page that no answer to HEAD has")
        client = clients(http_server.url)
        client.probe()
        client.probe()
        assert [request.method for request in http_server.requests] == ["HEAD", "HEAD"]

    @pytest.mark.parametrize("status", [401, 403, 407, 500, 503])
    def test_one_that_refuses_or_is_out_of_order_is_told(self, http_server, clients, status):
        http_server.respond = lambda request: Answer(status, b"no")
        with pytest.raises(HttpStatusError, match=str(status)):
            clients(http_server.url).probe()
