"""A server that cuts the responses of pages at any byte: the records of all pages come once, and in order."""

from __future__ import annotations

import gzip
import json
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balog.tap import RestStream, Tap
from balog.tap.http import Client, Policy
from tests.tap.syncs import SCHEMA, sync

IDS = list(range(1, 31))
PAGE = 10
CUT = st.tuples(st.sampled_from(["length", "chunked", "gzip"]), st.floats(0, 0.99), st.booleans())


def response(page: int, framing: str, method: str) -> bytes:
    """A whole response: a page of ids, and the number of the next page."""
    found = IDS[page * PAGE :][:PAGE]
    more = page + 1 if (page + 1) * PAGE < len(IDS) else None
    body = json.dumps({"rows": [{"id": id, "name": "x" * 200} for id in found], "next": more}).encode()
    head = f"HTTP/1.1 200 OK\r\nX-Method: {method}\r\n".encode()
    if framing == "chunked":
        parts = [body[at : at + 700] for at in range(0, len(body), 700)]
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in [*parts, b""])
        return head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks
    if framing == "gzip":
        body = gzip.compress(body)
        head += b"Content-Encoding: gzip\r\n"
    return head + b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


class CuttingServer:
    """Serves pages on plain sockets. Each response uses up one cut: its framing, the part that is sent, a reset."""

    def __init__(self) -> None:
        self.cuts: list[tuple[str, float, bool]] = []
        self.requests: list[str] = []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as lines:
            while line := lines.readline():
                method, target, _ = line.decode().split(" ")
                headers = dict(iter(lambda: tuple(lines.readline().strip().lower().split(b": ", 1)), (b"",)))
                lines.read(int(headers.get(b"content-length", 0)))
                page = int(target.partition("page=")[2] or 0)
                self.requests.append(f"{method} {page}")
                framing, part, is_reset = self.cuts.pop(0) if self.cuts else ("length", 1.0, False)
                whole = response(page, framing, method)
                connection.sendall(whole[: int(len(whole) * part)])
                if part < 1:
                    if is_reset:
                        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    return


@pytest.fixture(scope="module")
def server() -> Iterator[CuttingServer]:
    made = CuttingServer()
    yield made
    made.socket.close()


@contextmanager
def tap_of(server: CuttingServer, tries: int = 10) -> Iterator[Tap]:
    tap = Tap("tap-cut")
    policy = Policy(tries=tries, first=0.001, longest=0.001)
    with Client(server.url, policy=policy) as client:
        tap.client(lambda config: client)
        tap.add(
            RestStream(
                "rows",
                schema=SCHEMA,
                path="rows",
                items="rows",
                paging="cursor:next param=page",
                key_properties=["id"],
            )
        )
        server.requests.clear()
        yield tap


@settings(max_examples=40, deadline=None)
@given(cuts=st.lists(CUT, max_size=6))
def test_records_come_once_and_in_order(server: CuttingServer, cuts: list[tuple[str, float, bool]]) -> None:
    server.cuts = list(cuts)
    with tap_of(server) as tap:
        ran = sync(tap)
    assert (ran.failures, ran.ids()) == ([], IDS)
    assert sorted(set(server.requests)) == ["GET 0", "GET 1", "GET 2"]
    assert len(server.requests) == 3 + len(cuts)


@pytest.mark.parametrize("is_reset", [False, True])
@pytest.mark.parametrize("framing", ["length", "chunked", "gzip"])
def test_after_the_last_try_the_failure_is_one_line_and_the_pages_before_are_written(
    server: CuttingServer, framing: str, is_reset: bool
) -> None:
    server.cuts = [("length", 1.0, False), *[(framing, 0.7, is_reset)] * 3]
    with tap_of(server, tries=3) as tap:
        ran = sync(tap)
    [failure] = ran.failures
    server.cuts = []
    assert ran.ids() == IDS[:PAGE]
    assert "\n" not in failure
    assert server.requests == ["GET 0", "GET 1", "GET 1", "GET 1"]
