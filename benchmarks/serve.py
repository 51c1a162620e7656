"""Time durable acks of `balog serve` beside the same server with a handler that keeps nothing.

    python -m benchmarks.serve

Both are uvicorn with uvloop and httptools in a process each. balog's holds each event against its type's schema and
answers when it is on the disk (fsync); the empty one reads the body and answers. The client is a process of its own,
with 32 connections that each send the next request when the last is answered. All events have ids of their own, and are
encoded before the clock starts.
"""

from __future__ import annotations

import asyncio
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import click
import msgspec
import urllib3

from balog.event import Event, encode
from benchmarks.history import show_ratio
from benchmarks.measure import machine

CONNECTIONS = 32
BATCH = 100
HEAD = "POST /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n"
TARGETS = {1: 2000, BATCH: 20_000}  # durable events a second
SHARES = {1: 0.36, BATCH: 0.035}  # of the empty handler's speed
SCHEMA = {
    "type": "object",
    "required": ["cls_type", "version", "number", "customer", "lines"],
    "properties": {
        "cls_type": {"const": "order"},
        "version": {"const": "1.0.0"},
        "number": {"type": "integer", "minimum": 0},
        "customer": {"type": "string", "minLength": 1, "maxLength": 100},
        "paid": {"type": "boolean"},
        "lines": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["sku", "price"],
                "properties": {"sku": {"type": "string"}, "price": {"type": "number", "minimum": 0}},
            },
        },
    },
}


class Round(NamedTuple):
    """What one round took: seconds of all of it, and of each request."""

    seconds: float
    latencies: list[float]


def order(number: int) -> bytes:
    payload = {
        "cls_type": "order",
        "version": "1.0.0",
        "number": number,
        "customer": "c-4711",
        "paid": True,
        "lines": [{"sku": "A-1", "price": 12.5}, {"sku": "B-2", "price": 3}],
    }
    return encode(Event.new("shop.orders", payload, context={"run_id": "bench"}))


def requests(count: int, batch: int) -> list[bytes]:
    """Encode requests, head and body."""
    made = []
    for number in range(count):
        events = [order(number * batch + place) for place in range(batch)]
        body = events[0] if batch == 1 else b"[" + b",".join(events) + b"]"
        made.append(HEAD.format(len(body)).encode() + body)
    return made


class Connection(asyncio.Protocol):
    """Sends one request after the other; the next one when the answer to the last is there."""

    def __init__(self, wanted: Iterator[bytes], latencies: list[float], over: asyncio.Future[None]) -> None:
        self._wanted = wanted
        self._latencies = latencies
        self._over = over
        self._answer = b""
        self._need = -1

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._send()

    def _send(self) -> None:
        request = next(self._wanted, None)
        if request is None:
            self._over.set_result(None)
            self._transport.close()
            return
        self._begin = time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._answer += data
        if self._need < 0:
            head, end, _ = self._answer.partition(b"\r\n\r\n")
            if not end:
                return
            if not head.startswith(b"HTTP/1.1 202"):
                self._over.set_exception(RuntimeError(f"refused: {self._answer[:500]!r}"))
                self._transport.close()
                return
            self._need = len(head) + 4 + int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        if len(self._answer) >= self._need:
            self._latencies.append(time.perf_counter() - self._begin)
            self._answer, self._need = b"", -1
            self._send()

    def connection_lost(self, error: Exception | None) -> None:
        if not self._over.done():
            self._over.set_exception(error or ConnectionError("closed by the server"))


async def flood(port: int, wanted: Sequence[bytes]) -> Round:
    loop = asyncio.get_running_loop()
    latencies: list[float] = []
    source = iter(wanted)
    overs = [loop.create_future() for _ in range(CONNECTIONS)]
    begin = time.perf_counter()
    for over in overs:
        await loop.create_connection(lambda over=over: Connection(source, latencies, over), "127.0.0.1", port)  # type: ignore[misc]
    await asyncio.gather(*overs)
    return Round(time.perf_counter() - begin, latencies)


def client(port: int, count: int, batch: int) -> None:
    """Be the client's process: one round, its numbers on stdout."""
    import uvloop

    wanted = requests(count, batch)
    sys.stdout.buffer.write(msgspec.json.encode(uvloop.run(flood(port, wanted))))


def empty(port: int) -> None:
    """Be the server that keeps nothing."""
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    async def events(request: Request) -> Response:
        await request.body()
        return Response(b'{"accepted":1}', 202, media_type="application/json")

    app = Starlette(routes=[Route("/v1/events", events, methods=["POST"]), Route("/ready", lambda _: Response(b""))])
    uvicorn.run(app, port=port, loop="uvloop", http="httptools", log_level="error", access_log=False)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


@contextmanager
def running(*command: str, port: int) -> Iterator[int]:
    process = subprocess.Popen([sys.executable, "-m", *command], stdout=subprocess.DEVNULL)
    try:
        while True:
            try:
                if urllib3.request("GET", f"http://127.0.0.1:{port}/ready", retries=False, timeout=5).status == 200:
                    break
            except urllib3.exceptions.HTTPError:
                if process.poll() is not None:
                    raise SystemExit("the server did not start") from None
            time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait(60)


def serve(folder: Path, stack: ExitStack) -> int:
    port = free_port()
    types = folder / "types" / "order"
    types.mkdir(parents=True)
    (types / "1.0.0.json").write_bytes(msgspec.json.encode(SCHEMA))
    config = {"topics": f"local:{folder}/topics", "registry": f"{folder}/types", "listen": f"127.0.0.1:{port}"}
    (folder / "serve.json").write_bytes(msgspec.json.encode(config))
    return stack.enter_context(running("balog", "serve", "--config", str(folder / "serve.json"), port=port))


def measure(port: int, count: int, batch: int) -> Round:
    command = [sys.executable, "-m", "benchmarks.serve", "--client", str(port), str(count), str(batch)]
    with tempfile.TemporaryFile() as said:
        subprocess.run(command, stdout=said, check=True)
        said.seek(0)
        return msgspec.json.decode(said.read(), type=Round)


def percentile(values: Sequence[float], part: float) -> float:
    return sorted(values)[min(int(len(values) * part), len(values) - 1)]


def report(batch: int, count: int, rounds: dict[str, list[Round]]) -> None:
    click.echo(f"\n{'one event' if batch == 1 else f'{batch} events'} a request: {count} requests a round")
    click.echo(f"\n{'':12}{'requests/s':>12}{'events/s':>12}{'p50 ms':>10}{'p99 ms':>10}{'x empty':>10}")
    times = {name: statistics.median(one.seconds for one in done) for name, done in rounds.items()}
    for name, done in rounds.items():
        latencies = [latency * 1000 for one in done for latency in one.latencies]
        click.echo(
            f"{name:12}{count / times[name]:12,.0f}{count * batch / times[name]:12,.0f}"
            f"{percentile(latencies, 0.5):10.2f}{percentile(latencies, 0.99):10.2f}{times[name] / times['empty']:10.2f}"
        )
    click.echo(f"\n{count * batch / times['balog']:,.0f} durable events/s (target ≥ {TARGETS[batch]:,})")
    seconds = {name: [one.seconds for one in done] for name, done in rounds.items()}
    target = f"≥ {SHARES[batch]}"
    show_ratio(f"the empty handler's speed, {batch} a request", seconds["empty"], seconds["balog"], target)


@click.command(help=__doc__)
@click.option("--rounds", default=5, show_default=True)
@click.option("--quick", is_flag=True, help="Little of the work: shows that it runs, measures nothing.")
@click.option("--client", "client_of", nargs=3, type=int, hidden=True)
@click.option("--empty", "empty_at", type=int, hidden=True)
def main(rounds: int, quick: bool, client_of: tuple[int, int, int] | None, empty_at: int | None) -> None:
    if client_of:
        client(*client_of)
        return
    if empty_at:
        empty(empty_at)
        return
    click.echo(machine("balog", "uvicorn", "starlette", "uvloop", "httptools"))
    counts = {1: 200, BATCH: 20} if quick else {1: 10_000, BATCH: 1000}
    folder = Path(tempfile.mkdtemp(prefix="balog-serve-"))
    try:
        with ExitStack() as stack:
            bare = free_port()
            ports = {"empty": stack.enter_context(running("benchmarks.serve", "--empty", str(bare), port=bare))}
            ports["balog"] = serve(folder, stack)
            for batch, count in counts.items():
                found: dict[str, list[Round]] = {name: [] for name in ports}
                for number in range(1 if quick else rounds + 1):
                    for name, port in ports.items():
                        took = measure(port, count, batch)
                        if number or quick:  # the first round does not count
                            found[name].append(took)
                report(batch, count, found)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
