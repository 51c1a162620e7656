"""Clients that are slow, cut off, many, or speak no HTTP; all on real connections."""

import asyncio
import re
import socket
import ssl
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest
import trustme
import urllib3

from balog.service.api import protocol
from balog.service.api.app import Application
from balog.service.settings import RequestLimits
from tests.service.serving import answer_of, serving
from tests.waiting import wait_for

ORDER = b'{"cls_type":"order","version":"1.0.0","price":1}'


def head(length: int, *more: str) -> bytes:
    lines = ["POST /v1/events HTTP/1.1", "Host: localhost", f"Content-Length: {length}", *more]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


def answered(service, sent: bytes, *, is_last: bool = False):
    """Send bytes on a connection of their own, and give the answer; after the last one, the service closes it."""
    with service.connection() as one:
        one.sendall(sent)
        answer = answer_of(one)
        assert not is_last or one.recv(1) == b""
    return answer


@pytest.fixture
def service(tmp_path: Path):
    with serving(tmp_path, RequestLimits(seconds=0.3, body_bytes=10_000)) as asked:
        yield asked


def test_who_sends_a_byte_now_and_then_is_told_after_the_time(service):
    with service.connection() as one:
        one.sendall(head(1000) + b'{"cls')
        over = threading.Event()

        def drip():
            while not over.wait(0.05):
                try:
                    one.sendall(b" ")
                except OSError:
                    return

        dripping = threading.Thread(target=drip)
        dripping.start()
        status, answer = answer_of(one)
        over.set()
        dripping.join()

    assert status == 408
    assert "0.3 seconds" in answer["problem"]
    wait_for(lambda: service.service.request_budget.used == 0)


def test_a_head_that_never_ends_is_given_up(service):
    assert answered(service, b"POST /v1/events HTTP/1.1\r\nHost: localhost\r\n", is_last=True)[0] == 408


def test_half_a_request_leaves_nothing(service):
    with service.connection() as one:
        one.sendall(head(len(ORDER) + 10) + ORDER)
    assert answered(service, head(len(ORDER)) + ORDER)[0] == 202

    assert len(service.stored("order")) == 1
    wait_for(lambda: service.service.request_budget.used == 0)


def test_what_lies_behind_a_length_that_is_too_small_is_no_request_and_takes_nobody_s_answer(service):
    assert answered(service, head(len(ORDER)) + ORDER + b"garbage\r\n\r\n", is_last=True)[0] == 202
    assert len(service.stored("order")) == 1


CHUNKED = b"POST /v1/events HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"\x16\x03\x01 hello\r\n\r\n", 400),
        (head(5, "Transfer-Encoding: chunked") + b"0\r\n\r\n", 400),
        (head(10_001, "Expect: 100-continue"), 413),
        (CHUNKED + (b"1000\r\n" + b" " * 4096 + b"\r\n") * 3, 413),
        (CHUNKED + b"%x\r\n%b\r\n0\r\nContent-Encoding: gzip\r\n\r\n" % (len(ORDER), ORDER), 202),
    ],
    ids=["no HTTP", "a length and chunks", "too much, before it is sent", "too many chunks", "a trailer is no header"],
)
def test_what_is_sent_has_its_status_in_the_one_form(service, sent, status):
    found, answer = answered(service, sent)
    assert found == status
    assert status == 202 or answer["path"] == "$"


def test_a_head_has_bounds(service):
    with service.connection() as one:
        try:
            for _ in range(100):
                one.sendall(b"GET /" + b"x" * 2000 if _ == 0 else b"x" * 2000)
            status = answer_of(one)[0]
        except OSError:  # closed while we were sending
            status = 431

    assert status == 431


def test_pipelined_requests_are_answered_in_order(service):
    with service.connection() as one:
        one.sendall((head(len(ORDER)) + ORDER) * 3 + head(1) + b"{")
        data = b""
        while data.count(b"HTTP/1.1") < 4:
            data += one.recv(65536)

    assert re.findall(rb"HTTP/1.1 (\d+)", data) == [b"202"] * 3 + [b"400"]


@pytest.mark.parametrize("path", ["/health", "/v1/events"])
def test_a_connection_that_closed_before_its_answer_is_no_fault_of_the_service(service, monkeypatch, path):
    said: list[str] = []
    monkeypatch.setattr(service.service, "say", said.append)
    sent: list[str] = []

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        sent.append(message["type"])
        raise RuntimeError("unable to perform operation on <TCPTransport closed=True>; the handler is closed")

    scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": []}
    asyncio.run(Application(service.service)(scope, receive, send))

    assert said == []
    assert sent == ["http.response.start", "http.response.body"]


def connect(asked, stack: ExitStack, sent: bytes = b""):
    """Open a connection that stays open, and send bytes on it."""
    one = stack.enter_context(asked.connection())
    one.sendall(sent)
    return one


def test_one_connection_too_many_is_told_so(tmp_path: Path):
    with serving(tmp_path, RequestLimits(connections=3)) as asked, ExitStack() as stack:
        for _ in range(3):
            assert answer_of(connect(asked, stack, head(len(ORDER)) + ORDER))[0] == 202
        assert answer_of(connect(asked, stack))[0] == 503


def test_probes_are_answered_while_idle_connections_fill_the_service(tmp_path: Path):
    with serving(tmp_path, RequestLimits(connections=20)) as asked, ExitStack() as stack:
        for _ in range(100):  # none of them says anything
            connect(asked, stack)
        for path in (b"/health", b"/ready"):
            probe = connect(asked, stack, b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert answer_of(probe)[0] == 200
        assert answer_of(connect(asked, stack, head(len(ORDER)) + ORDER))[0] == 503


def test_an_idle_connection_gives_way_to_one_with_a_request(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(protocol, "_IDLE_SECONDS", 0.0)
    with serving(tmp_path, RequestLimits(connections=3)) as asked, ExitStack() as stack:
        idle = [connect(asked, stack) for _ in range(3)]
        for _ in range(3):
            assert answer_of(connect(asked, stack, head(len(ORDER)) + ORDER))[0] == 202
        assert [answer_of(one)[0] for one in idle] == [503] * 3


def test_a_thousand_connections_at_once_are_all_served(tmp_path: Path):
    with serving(tmp_path) as asked, ExitStack() as stack:
        all = [connect(asked, stack) for _ in range(1000)]
        for one in all:
            one.sendall(head(len(ORDER)) + ORDER)

        assert {answer_of(one)[0] for one in all} == {202}
        assert len(asked.stored("order")) == 1000


def test_a_stop_answers_what_is_under_way_and_hangs_up_on_the_rest(tmp_path: Path):
    with serving(tmp_path, RequestLimits(seconds=60), drain=0.2) as asked:
        with asked.connection() as idle, asked.connection() as half:
            half.sendall(head(1000) + b"{")
            asked.ask("GET", "/ready")
            asked.service.stop()

            assert idle.recv(1) == b""
            assert half.recv(65536) == b""
        with pytest.raises(OSError):
            socket.create_connection(("127.0.0.1", int(asked.service.url.rpartition(":")[2])), timeout=5).close()


def test_tls_with_a_certificate_of_ones_own(tmp_path: Path):
    ca = trustme.CA()
    issued = ca.issue_cert("127.0.0.1")
    issued.private_key_pem.write_to_path(str(tmp_path / "key.pem"))
    for number, part in enumerate(issued.cert_chain_pems):
        part.write_to_path(str(tmp_path / "cert.pem"), append=number > 0)
    context = ssl.create_default_context()
    ca.configure_trust(context)
    with serving(tmp_path, tls_cert=str(tmp_path / "cert.pem"), tls_key=str(tmp_path / "key.pem")) as asked:
        with urllib3.PoolManager(ssl_context=context) as http:
            answer = http.request("POST", asked.service.url + "/v1/events", body=ORDER)

            assert (asked.service.url[:5], answer.status) == ("https", 202)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 403),
        ({"Host": "localhost:1"}, 202),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
    ],
)
def test_a_page_of_another_site_can_send_nothing_to_a_service_without_tokens(tmp_path: Path, headers, status):
    with serving(tmp_path) as asked:
        answer = asked.http.request("POST", asked.service.url + "/v1/events", body=ORDER, headers=headers)

        assert answer.status == status
        assert len(asked.stored("order")) == (status == 202)


def test_who_does_not_take_his_answers_is_left(service):
    """Of lines that are refused each, an answer is many times as long as the request."""
    body = b"x\n" * 5000
    request = head(len(body), "Content-Type: application/x-ndjson").replace(b"events", b"events?failed=drop", 1) + body
    with service.connection() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.settimeout(10)
        with pytest.raises(ConnectionError):
            one.sendall(request * 1000)

    wait_for(lambda: service.service.request_budget.used == 0)


def test_a_client_that_asks_for_http_2_without_tls_is_told_why_its_body_is_lost(service):
    upgrade = head(len(ORDER), "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c") + ORDER

    status, answer = answered(service, upgrade, is_last=True)
    assert status == 400
    assert "Upgrade" in answer["problem"]
