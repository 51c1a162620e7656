"""What the benchmark of the sinks sends to: a process that takes HTTP and UDP on one port, and does next to nothing.

    python -m benchmarks.sink_server

It prints its port, and ends when its stdin does. Any POST is answered 200 with `{}`, 202 where PagerDuty has it; one to
`/_bulk` as Elasticsearch answers it; GET gives how many events came: documents of bulk requests, lines of datagrams, or
else requests.
"""

from __future__ import annotations

import gzip
import re
import socket
import sys
import threading

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_ITEM = (
    b'{"create":{"_index":".ds-logs-balog-default-2026.11.20-000001","_id":"LG0123456789abcdef0123456789abcdef",'
    b'"_version":1,"result":"created","_shards":{"total":2,"successful":1,"failed":0},"_seq_no":1,"_primary_term":1,'
    b'"status":201}}'
)
_FILTERED = b'{"create":{"status":201}}'

_came = 0
_lock = threading.Lock()


def _count(events: int) -> None:
    global _came
    with _lock:
        _came += events


def _body(head: bytes, data: bytes) -> bytes:
    """Answer one request."""
    if head.startswith(b"GET /came"):
        return b"%d" % _came
    line = head.split(b"\r\n", 1)[0]
    if b"/_bulk" not in line:
        _count(1)
        return b"{}"
    if b"content-encoding: gzip" in head.lower():
        data = gzip.decompress(data)
    documents = data.count(b"\n") // 2
    _count(documents)
    item = _FILTERED if b"filter_path" in line else _ITEM
    return b'{"took":1,"errors":false,"items":[' + b",".join([item] * documents) + b"]}"


def _serve(connection: socket.socket) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    waiting = b""
    with connection:
        while True:
            while (end := waiting.find(b"\r\n\r\n")) < 0:
                chunk = connection.recv(1 << 20)
                if not chunk:
                    return
                waiting += chunk
            head, found = waiting[:end], _LENGTH.search(waiting, 0, end)
            size = end + 4 + (int(found[1]) if found else 0)
            parts, length = [waiting], len(waiting)
            while length < size:
                chunk = connection.recv(1 << 20)
                if not chunk:
                    return
                parts.append(chunk)
                length += len(chunk)
            joint = b"".join(parts)
            waiting = joint[size:]
            body = _body(head, joint[end + 4 : size])
            status = b"202 Accepted" if b" /v2/enqueue" in head[:100] else b"200 OK"
            connection.sendall(
                b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nX-Elastic-Product: Elasticsearch\r\n"
                b"Content-Length: %d\r\n\r\n%b" % (status, len(body), body)
            )


def _drain(datagrams: socket.socket) -> None:
    while lines := datagrams.recv(65536):
        _count(lines.rstrip(b"\n").count(b"\n") + 1)


def main() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    datagrams.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    datagrams.bind(("127.0.0.1", port))
    threading.Thread(target=_drain, args=(datagrams,), daemon=True).start()

    def accept() -> None:
        while True:
            threading.Thread(target=_serve, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    print(port, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
