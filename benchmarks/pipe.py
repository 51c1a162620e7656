"""Time a Singer stream on its way through balog broker, through cat, and through loops that decode each line.

    python -m benchmarks.pipe

Each way is `cat FILE | … | cat > /dev/null`, timed from the first process's start to the last one's end, so that
starting Python counts. The stream has records of some 360 bytes and a LOG, which is a whole event, every 100 records.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import msgspec

from balog.event import Event
from balog.singer import write_log
from balog.topics import open_topics
from benchmarks.history import show_ratio
from benchmarks.measure import interleaved, machine, medians

LOG_EVERY = 100

_LOOP = """
import sys
from {module} import {name} as decode
out = sys.stdout.buffer
for line in sys.stdin.buffer:
    if decode(line)["type"] == "LOG":
        pass
    out.write(line)
"""


def records(seed: int = 1) -> Iterator[bytes]:
    """Give the lines of a stream without end, as singer-python writes them, the same for the same seed."""
    random_ = random.Random(seed)
    yield b'{"type": "SCHEMA", "stream": "orders", "schema": {"type": "object"}, "key_properties": ["id"]}\n'
    for number in range(sys.maxsize):
        if number % LOG_EVERY == 0:
            metric = {"type": "counter", "metric": "record_count", "value": LOG_EVERY, "tags": {"stream": "orders"}}
            yield write_log(Event.new("tap_shop.metric", {"cls_type": "metric", "version": "1.0.0", **metric}))
        record = {
            "id": number,
            "customer": f"{random_.getrandbits(64):016x}",
            "email": f"c{number}@example.com",
            "status": "shipped",
            "total": round(random_.random() * 1000, 2),
            "note": "leave it at the door, please – thanks",
            "lines": [{"sku": f"{random_.getrandbits(32):08x}", "quantity": number % 9 + 1}],
            "updated_at": f"2026-11-20T07:46:12.{random_.randrange(10**6):06d}Z",
        }
        extracted = "2026-11-20T07:46:13.000000Z"
        message = {"type": "RECORD", "stream": "orders", "record": record, "time_extracted": extracted}
        yield json.dumps(message).encode() + b"\n"


def write_stream(path: Path, size: int) -> int:
    """Write whole lines until there are ``size`` bytes; give how many bytes there are.

    The first 64 MiB are made; what follows is the same again with other ids for the events, so that no topic takes
    them for repeats.
    """
    made, block = 0, []
    for line in records():
        block.append(line)
        made += len(line)
        if made >= min(size, 64 << 20):
            break
    with path.open("wb") as out:
        while out.tell() < size:
            out.writelines(_with_fresh_ids(block))
        return out.tell()


def _with_fresh_ids(block: list[bytes]) -> Iterator[bytes]:
    for line in block:
        if line.startswith(b'{"type":"LOG"'):
            value = msgspec.json.decode(line)["value"]
            header = value["header"]
            line = write_log(Event.new(header["channel"], value["payload"], level=header["level"]))  # noqa: PLW2901
        yield line


def seconds(path: Path, *command: str) -> float:
    """Run `cat path | command | cat > /dev/null`; give the seconds until the last of them has ended."""
    began = time.perf_counter()
    source = subprocess.Popen(["cat", str(path)], stdout=subprocess.PIPE)
    middle = subprocess.Popen(command, stdin=source.stdout, stdout=subprocess.PIPE)
    end = subprocess.Popen(["cat"], stdin=middle.stdout, stdout=subprocess.DEVNULL)
    for process in (source, middle):
        assert process.stdout is not None
        process.stdout.close()
    codes = [process.wait() for process in (source, middle, end)]
    took = time.perf_counter() - began
    if any(codes):
        raise click.ClickException(f"{' '.join(command)[:60]}: exit codes {codes}")
    return took


_PEAK = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
sys.exit(code)
"""


def peak(path: Path, command: list[str]) -> int:
    """Run a command over a stream once; give the most bytes that it had resident.

    It is started by a small process: the kernel counts what a process had before it became the command.
    """
    with path.open("rb") as stream:
        done = subprocess.run(
            [sys.executable, "-c", _PEAK, *command], stdin=stream, stdout=subprocess.PIPE, check=False
        )
    if done.returncode:
        raise click.ClickException(f"{' '.join(command)[:60]}: exit code {done.returncode}")
    return int(done.stdout)


def broker(folder: Path, name: str, sinks: list[dict[str, str]]) -> list[str]:
    """Give the command of a broker with these sinks."""
    config = folder / f"{name}.json"
    config.write_bytes(msgspec.json.encode({"sinks": sinks}))
    return [sys.executable, "-m", "balog", "broker", "--config", str(config)]


def topic_and_store(home: str) -> list[dict[str, str]]:
    """Give the config of two sinks on disk, in a folder."""
    return [
        {"type": "topic", "url": f"local:{home}/topics", "topic": "events"},
        {"type": "store", "path": f"{home}/archive", "topic": "events"},
    ]


def with_sinks(folder: Path, path: Path, events: int) -> Callable[[], float]:
    """Give a way whose broker feeds a local topic and an archive, new ones each time, and see that all came."""

    def measure() -> float:
        with tempfile.TemporaryDirectory(dir=folder) as home:
            took = seconds(path, *broker(Path(home), "sinks", topic_and_store(home)))
            with open_topics(f"local:{home}/topics") as topics:
                found = topics.topic("events").describe().messages
            if found != events:
                raise click.ClickException(f"the topic has {found} of {events} events")
            return took

    return measure


def with_loop(path: Path, module: str, name: str) -> Callable[[], float]:
    """Give a way that decodes each line with a function of a module and writes it on."""
    return lambda: seconds(path, sys.executable, "-c", _LOOP.format(module=module, name=name))


def check(path: Path, command: list[str]) -> None:
    """See that a broker passes every byte on, or its speed means nothing."""
    with path.open("rb") as stream, subprocess.Popen(command, stdin=stream, stdout=subprocess.PIPE) as passing:
        compared = subprocess.run(["cmp", "-", str(path)], stdin=passing.stdout, check=False)
    if compared.returncode or passing.returncode:
        raise click.ClickException("the broker did not pass the stream on byte for byte")


@click.command()
@click.option("--size", default=871, show_default=True, help="Millions of bytes in the stream.")
@click.option("--rounds", default=5, show_default=True, help="Rounds, after one to warm up.")
@click.option(
    "--folder", type=click.Path(path_type=Path, exists=True), help="Where the stream is made and removed again."
)
@click.option("--quick", is_flag=True, help="A megabyte only: does it run?")
def main(size: int, rounds: int, folder: Path | None, quick: bool) -> None:
    """Compare what it costs to carry a Singer stream."""
    if quick:
        size, rounds = 1, 1
    with tempfile.TemporaryDirectory(dir=folder, prefix="balog-bench-") as home:
        path = Path(home) / "stream.singer"
        length = write_stream(path, size * 1_000_000)
        with path.open("rb") as stream:
            events = sum(line.startswith(b'{"type":"LOG"') for line in stream)
        plain = broker(Path(home), "none", [])
        check(path, plain)
        ways = {
            "cat": lambda: seconds(path, "cat"),
            "balog broker": lambda: seconds(path, *plain),
            "balog broker, topic + store": with_sinks(Path(home), path, events),
            "loop with json": with_loop(path, "json", "loads"),
            "loop with orjson": with_loop(path, "orjson", "loads"),
            "loop with msgspec": with_loop(path, "msgspec.json", "decode"),
        }
        click.echo(machine("balog", "msgspec", "orjson"))
        click.echo(
            f"medians of {rounds} rounds; {length / 1e6:.0f} MB, {events} LOG messages, file in the page cache\n"
        )
        each = interleaved(ways, rounds)
        table = medians(each)
        sinks = broker(Path(home), "sinks", topic_and_store(home))
        gone = broker(Path(home), "gone", [{"type": "webhook", "url": "http://127.0.0.1:9"}])
        most = {"no sinks": peak(path, plain), "topic + store": peak(path, sinks), "a dead sink": peak(path, gone)}
    click.echo(f"{'':30}{'seconds':>8}{'MB/s':>8}{'× cat':>8}")
    for name, took in table.items():
        click.echo(f"{name:30}{took:8.2f}{length / took / 1e6:8.0f}{table['cat'] / took:8.3f}")
    resident = ", ".join(f"{bytes / 1e6:.0f} MB with {name}" for name, bytes in most.items())
    click.echo(f"\nresident at most: {resident} (target ≤ 80)")
    show_ratio("cat's speed", each["cat"], each["balog broker"], "≥ 0.5")


if __name__ == "__main__":
    main()
