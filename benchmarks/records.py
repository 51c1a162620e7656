"""Time one mask on records of ten properties: balog, the Meltano SDK's stream maps, jq.

    python -m benchmarks.records

Two tables. The first is `cat FILE | … > /dev/null` for whole programs that do the same to each record: the MD5 of a
property in its place, or a constant. Starting up is measured with a short stream, and taken off. The second is
balog's editor alone, by what it does. All ways take turns, and medians are compared.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from balog.broker.records.config import RecordRule
from balog.broker.records.editor import RecordEditor
from benchmarks.history import show_ratio
from benchmarks.measure import interleaved, machine, medians

ROOT = Path(__file__).parents[1]
SDK = ROOT / ".demo" / "singer-sdk" / "bin" / "python"
KEY = "BENCHMARK_KEY"
SHORT = 500
JQ = 'if .type == "RECORD" then .record.email = "[redacted]" else . end'
SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "email": {"type": "string", "format": "email"},
        "name": {"type": "string"},
        "created_at": {"type": "string", "format": "date-time"},
        "amount": {"type": "number"},
        "currency": {"type": "string"},
        "is_active": {"type": "boolean"},
        "note": {"type": ["string", "null"]},
        "city": {"type": "string"},
        "score": {"type": "number"},
    },
}
RULES: dict[str, dict[str, Any]] = {
    "mask, sha256 with a key": {"mask": {"email": {"how": "sha256", "key": {"env": KEY}}}},
    "mask, md5": {"mask": {"email": "md5"}},
    "mask, redact": {"mask": {"email": "redact"}},
    "five masks, sha256": {
        "mask": {
            name: {"how": "sha256", "key": {"env": KEY}} for name in ("email", "name", "city", "amount", "created_at")
        }
    },
    "drop": {"drop": ["email"]},
    "rename": {"rename": {"email": "mail"}},
    "set, an expression": {"set": {"email": {"expr": "LOWER(email)"}}},
    "filter, keeps": {"filter": "amount >= 0"},
    "filter, keeps none": {"filter": "amount < 0"},
}


def lines(records: int) -> Iterator[bytes]:
    """Give a SCHEMA and so many records of ten properties, as singer-python writes them."""
    random_ = random.Random(1)
    yield (
        json.dumps({"type": "SCHEMA", "stream": "users", "schema": SCHEMA, "key_properties": ["id"]}) + "\n"
    ).encode()
    for number in range(records):
        record = {
            "id": number,
            "email": f"person{number}@example.com",
            "name": f"Some Body {number % 97}",
            "created_at": f"2026-11-20T07:46:12.{random_.randrange(10**6):06d}Z",
            "amount": round(random_.random() * 1000, 2),
            "currency": "EUR",
            "is_active": True,
            "note": None,
            "city": "Luxembourg",
            "score": round(random_.random(), 4),
        }
        yield json.dumps({"type": "RECORD", "stream": "users", "record": record}).encode() + b"\n"


class Program:
    """A program that changes a stream, and streams that are long enough for it."""

    def __init__(self, folder: Path, name: str, records: int, *command: str) -> None:
        self.command = command
        self.records = records
        self._long, self._short = folder / f"{name}.long", folder / f"{name}.short"
        for path, count in ((self._long, records), (self._short, SHORT)):
            path.write_bytes(b"".join(lines(count)))

    def seconds(self) -> float:
        """Give the seconds that a record takes."""
        return max(1e-9, _run(self._long, self.command) - _run(self._short, self.command)) / (self.records - SHORT)

    def changed(self) -> list[Any]:
        """Give the records that go on of the short stream, as data."""
        with self._short.open("rb") as stream:
            out = subprocess.run(self.command, stdin=stream, stdout=subprocess.PIPE, check=True).stdout
        return [message["record"] for message in map(json.loads, out.splitlines()) if message["type"] == "RECORD"]


def _run(path: Path, command: tuple[str, ...]) -> float:
    began = time.perf_counter()
    with path.open("rb") as stream:
        code = subprocess.run(command, stdin=stream, stdout=subprocess.DEVNULL, check=False).returncode
    took = time.perf_counter() - began
    if code:
        raise click.ClickException(f"{' '.join(command)[:60]}: exit code {code}")
    return took


def programs(folder: Path, scale: float) -> dict[str, Program]:
    """Give the programs that can be had here, each with a stream of a second or more."""

    def broker(how: str) -> tuple[str, ...]:
        config = folder / f"{how}.json"
        config.write_bytes(msgspec.json.encode({"sinks": [], "records": [{"stream": "users", "mask": {"email": how}}]}))
        return sys.executable, "-m", "balog", "broker", "--config", str(config)

    def sdk(codec: str, expression: str) -> tuple[str, ...]:
        config = {"stream_maps": {"users": {"email": expression}}}
        return str(SDK), str(ROOT / "benchmarks" / "sdk_mapper.py"), json.dumps(config), codec

    found = {
        "md5: balog broker": Program(folder, "balog-md5", int(1_000_000 * scale), *broker("md5")),
        "redact: balog broker": Program(folder, "balog-redact", int(1_000_000 * scale), *broker("redact")),
    }
    if SDK.exists():
        few = int(60_000 * max(scale, 0.2))
        found |= {
            "md5: SDK stream map": Program(folder, "sdk", few, *sdk("json", "md5(email)")),
            "md5: SDK stream map, msgspec": Program(folder, "sdk-msgspec", few, *sdk("msgspec", "md5(email)")),
            "redact: SDK stream map": Program(folder, "sdk-redact", few, *sdk("json", "'[redacted]'")),
        }
    else:
        click.echo("no singer-sdk in .demo/singer-sdk; make bench installs it\n")
    if shutil.which("jq"):
        found["redact: jq"] = Program(folder, "jq", int(150_000 * scale), "jq", "-c", JQ)
    else:
        click.echo("no jq here\n")
    return found


def check(found: dict[str, Program]) -> None:
    """See that all programs of a kind make the same records, or their speed means nothing."""
    for kind in ("md5", "redact"):
        made = {name: program.changed() for name, program in found.items() if name.startswith(kind)}
        first = made[f"{kind}: balog broker"]
        for name, records in made.items():
            if records != first or len(records) != SHORT:
                raise click.ClickException(f"{name} makes other records than balog does")


def editing(records: int) -> dict[str, Callable[[], float]]:
    """Give balog's editor by what it does, in seconds of this process a record."""
    schema, *given = lines(records)

    def way(rule: dict[str, Any]) -> Callable[[], float]:
        editor = RecordEditor([msgspec.convert({"stream": "users", **rule}, RecordRule)], None, click.echo)
        editor.edit("SCHEMA", schema)

        def measure() -> float:
            edit = editor.edit
            began = time.process_time()
            for line in given:
                edit("RECORD", line)
            return (time.process_time() - began) / records

        return measure

    return {name: way(rule) for name, rule in RULES.items()}


@click.command()
@click.option("--rounds", default=5, show_default=True, help="Rounds, after one to warm up.")
@click.option("--quick", is_flag=True, help="A few records only: does it run?")
def main(rounds: int, quick: bool) -> None:
    """Compare what changing records costs."""
    os.environ[KEY] = "0123456789abcdef0123456789abcdef"
    if quick:
        rounds = 1
    with tempfile.TemporaryDirectory(prefix="balog-bench-") as home:
        found = programs(Path(home), 0.02 if quick else 1)
        check(found)
        click.echo(machine("balog", "msgspec"))
        click.echo(f"medians of {rounds} rounds; records of ten properties, {len([*lines(1)][1])} bytes a line\n")
        seconds = interleaved({name: program.seconds for name, program in found.items()}, rounds)
        table = medians(seconds)
    alone = medians(interleaved(editing(1000 if quick else 50_000), rounds))
    click.echo(f"{'whole programs':34}{'µs':>8}{'records/s':>12}{'× balog':>10}")
    for name, took in sorted(table.items()):
        ours = table[f"{name.split(':')[0]}: balog broker"]
        click.echo(f"{name:34}{took * 1e6:8.2f} {1 / took:11,.0f} {ours / took:9.3f}")
    click.echo(f"\n{'the editor alone':34}{'µs':>8}{'records/s':>12}")
    for name, took in alone.items():
        click.echo(f"{name:34}{took * 1e6:8.2f} {1 / took:11,.0f}")
    one_mask = 1 / alone["mask, sha256 with a key"]
    click.echo(f"\none mask: {one_mask:,.0f} records/s on one core (target ≥ 200,000)")
    if (peer := seconds.get("md5: SDK stream map")) is not None:
        show_ratio("the SDK's stream maps", peer, seconds["md5: balog broker"])


if __name__ == "__main__":
    main()
