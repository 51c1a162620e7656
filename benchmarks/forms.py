"""Time what a worker does with the same events in each form, and with an events file in each compression.

    python -m benchmarks.forms            # 200,000 events
    python -m benchmarks.forms --quick    # 20,000, to see that it runs

A way's file is read by one process into Arrow batches of all columns, the payload as JSON text. Seconds are those of a
core, MB those of the decompressed file, of which the forms need more or fewer for an event.
"""

from __future__ import annotations

import gzip
import json
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import msgspec
import zstandard
from pyspark.sql import types as t

from balog.analytics.reading.scan import EventQuery, scan
from balog.analytics.reading.spark_types import DEFAULT, project_spark
from balog.analytics.reading.tasks import Slice
from benchmarks.generate import run
from benchmarks.measure import interleaved, machine, medians

_SCHEMA = t.StructType([*(f for f in DEFAULT if f.name != "payload"), t.StructField("payload_json", t.StringType())])


def _events(count: int) -> list[bytes]:
    random_, found = random.Random(7), []
    while len(found) < count:
        found += [line.rstrip(b"\n") for line in run(random_, 400)]
    return found[:count]


def _message(event: bytes, body: Callable[[str], str]) -> dict[str, str]:
    return {
        "MessageId": "5fea7756-0ea4-451a-a703-a558b933e274",
        "ReceiptHandle": "AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a" * 9,
        "MD5OfBody": "fafb00f5732ab283681e124bf8747ed1",
        "Body": body(event.decode()),
    }


def _envelope(text: str) -> str:
    arn = "arn:aws:sns:eu-west-1:123456789012:events"
    return json.dumps({"Type": "Notification", "MessageId": "22b80b92", "TopicArn": arn, "Message": text})


def _receive_message(events: list[bytes]) -> Iterator[bytes]:
    for start in range(0, len(events), 10):
        messages = [_message(event, str) for event in events[start : start + 10]]
        yield json.dumps({"Messages": messages}, indent=4).encode()


def _old(event: bytes) -> bytes:
    document = msgspec.json.decode(event)
    header = document["header"]
    return "\t".join([header["timestamp"], header["channel"], json.dumps(document["payload"])]).encode()


def _as_text(event: bytes) -> bytes:
    """What a tap of the Meltano SDK would have printed."""
    document = msgspec.json.decode(event)
    header, payload = document["header"], document["payload"]
    text = payload["message"] if payload["cls_type"] == "log" else "METRIC: " + json.dumps(payload)
    when = header["timestamp"].replace("T", " ").replace(".", ",")[:23]
    return f"{when} | {header['level']:8} | {header['channel']:30} | {text}".encode()


def _files(folder: Path, events: list[bytes]) -> dict[str, tuple[Path, int, int]]:
    """Write a file for each way; give its path, its decompressed bytes and its events."""
    record = b'{"type":"RECORD","stream":"s","record":{"id":12345,"name":"Thigpen","city":"Bay Springs","state":"MS"}}'
    plain = b"\n".join([*events, b""])
    ways = {
        "events": plain,
        "events, gzip": plain,
        "events, zstd": plain,
        "sqs, line by line": b"\n".join(json.dumps(_message(event, str)).encode() for event in events),
        "sqs, as aws prints it": b"\n".join(_receive_message(events)),
        "sqs, in SNS's envelope": b"\n".join(json.dumps(_message(event, _envelope)).encode() for event in events),
        "old": b"\n".join(map(_old, events)),
        "singer, LOG lines": b"\n".join(b'{"type":"LOG","level":"INFO","value":%b}' % event for event in events),
        "singer, RECORD lines": b"\n".join([record] * len(events)),
        "stderr, SDK": b"\n".join(map(_as_text, events)),
        "stderr, singer-python": b"\n".join(b"INFO " + _as_text(event)[69:] for event in events),
    }
    pack: dict[str, Callable[[bytes], bytes]] = {
        "events, gzip": gzip.compress,
        "events, zstd": zstandard.compress,
    }
    found = {}
    for number, (way, data) in enumerate(ways.items()):
        path = folder / f"{number}.dump"
        path.write_bytes(pack.get(way, bytes)(data))
        found[way] = path, len(data), 0 if "RECORD" in way else len(events)
    return found


def _read(way: str, path: Path) -> int:
    form = way.partition(",")[0]
    found = 0
    for batch in scan([Slice(str(path))], EventQuery(project_spark(_SCHEMA)), form=form):
        bad = batch.column("quarantine")
        if bad.null_count != len(bad):
            raise click.ClickException(f"{way}: {bad.drop_null()[0]}")
        found += len(batch)
    return found


@click.command(help=__doc__)
@click.option("--events", "count", default=200_000, show_default=True)
@click.option("--rounds", default=5, show_default=True)
@click.option("--quick", is_flag=True, help="20,000 events, one round.")
def main(count: int, rounds: int, quick: bool) -> None:
    count, rounds = (20_000, 1) if quick else (count, rounds)
    with tempfile.TemporaryDirectory(prefix="balog-forms-") as folder:
        files = _files(Path(folder), _events(count))

        def measured(way: str) -> Callable[[], float]:
            def measure() -> float:
                path, _, expected = files[way]
                start = time.process_time()
                found = _read(way, path)
                took = time.process_time() - start
                if found != expected:
                    raise click.ClickException(f"{way}: {found} events of {expected}")
                return took

            return measure

        seconds: dict[str, Any] = medians(interleaved({way: measured(way) for way in files}, rounds))
        print(machine("duckdb", "msgspec", "pyarrow"))
        print(f"{count} events, {rounds} rounds, medians")
        print(f"{'':26}{'MB/s':>8}{'events/s':>12}{'µs/event':>10}{'× events':>10}")
        for way, (_, size, expected) in files.items():
            took = seconds[way]
            rate = f"{expected / took:12,.0f}" if expected else f"{'-':>12}"
            each = f"{took / count * 1e6:10.2f}"
            print(f"{way:26}{size / took / 1e6:8.0f}{rate}{each}{took / seconds['events']:10.2f}")


if __name__ == "__main__":
    main()
