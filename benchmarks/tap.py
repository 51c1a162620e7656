"""Time the same tap on balog.tap, on the Meltano SDK and on singer-python.

    python -m benchmarks.tap

One stream of ten fields, one of them an object and one the replication key; records from memory; the bookmark at the
end. Each tap is a process in its own environment that writes into a pipe, and says how long its sync had a core, in
user and system time, so that what else runs on the machine tells little; that of a short one is taken off. First all of
them write the same records, schema and bookmark, or nothing is measured.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from benchmarks.history import show_ratio
from benchmarks.measure import interleaved, machine, medians
from benchmarks.tap_work import SCHEMA

ROOT = Path(__file__).parents[1]
SHORT = 500
PEERS = {
    "balog.tap, pages of 100": (sys.executable, "tap_balog.py", "pages", 4),
    "balog.tap, one by one": (sys.executable, "tap_balog.py", "records", 4),
    "singer-python, write_record": (".demo/tap-weather/bin/python", "tap_singer.py", "plain", 2),
    "singer-python, Transformer": (".demo/tap-weather/bin/python", "tap_singer.py", "transformer", 0.1),
    "singer-sdk": (".demo/singer-sdk/bin/python", "tap_sdk.py", "json", 1),
    "singer-sdk, msgspec": (".demo/singer-sdk/bin/python", "tap_sdk.py", "msgspec", 1),
}


def run(name: str, records: int, take: Callable[[bytes], Any]) -> float:
    """Run a tap, hand what it writes on, and give the seconds that its sync had a core."""
    python, script, way, _ = PEERS[name]
    with tempfile.NamedTemporaryFile() as seconds, tempfile.TemporaryFile() as said:
        tap = subprocess.Popen(
            [str(ROOT / python), str(ROOT / "benchmarks" / script), str(records), way],
            stdout=subprocess.PIPE,
            stderr=said,
            env=os.environ | {"BENCHMARK_SECONDS": seconds.name, "PYTHONPATH": str(ROOT)},
        )
        assert tap.stdout is not None
        with tap.stdout:
            while piece := os.read(tap.stdout.fileno(), 1 << 20):
                take(piece)
        if tap.wait():
            said.seek(0)
            raise click.ClickException(f"{name}: exit code {tap.returncode}: {said.read()[-2000:].decode()}")
        return float(seconds.read())


def written(name: str, records: int) -> tuple[Any, list[Any], Any]:
    """Give what a tap writes: the schema's properties, the records, the bookmark at the end."""
    pieces: list[bytes] = []
    run(name, records, pieces.append)
    messages = [json.loads(line) for line in b"".join(pieces).splitlines()]
    (schema,) = [message for message in messages if message["type"] == "SCHEMA"]
    bookmark = next(m["value"] for m in reversed(messages) if m["type"] == "STATE")["bookmarks"]["users"]
    return (
        (schema["schema"]["properties"], schema["key_properties"]),
        [message["record"] for message in messages if message["type"] == "RECORD"],
        bookmark.get("updated_at", bookmark.get("replication_key_value")),
    )


def check(names: list[str], records: int) -> None:
    """See that all taps write the same, or their speed means nothing."""
    first = written(names[0], records)
    if len(first[1]) != records or first[0][0] != SCHEMA["properties"]:
        raise click.ClickException(f"{names[0]} wrote {len(first[1])} of {records} records")
    for name in names[1:]:
        for what, ours, theirs in zip(("schema", "records", "bookmark"), first, written(name, records)):
            if ours != theirs:
                raise click.ClickException(f"{name}: its {what} is another than that of {names[0]}")


@click.command()
@click.option("--rounds", default=7, show_default=True, help="Rounds, after one to warm up.")
@click.option("--records", default=30_000, show_default=True, help="Records of the slowest; the quick ones get more.")
@click.option("--quick", is_flag=True, help="A few records only: does it run?")
def main(rounds: int, records: int, quick: bool) -> None:
    """Compare what a record costs by the toolkit that its tap is made with."""
    rounds, records = (1, 1000) if quick else (rounds, records)
    names = [name for name, peer in PEERS.items() if (ROOT / peer[0]).exists()]
    if missing := sorted(PEERS.keys() - names):
        click.echo(f"not here, make bench installs them: {', '.join(missing)}\n")
    check(names, 1000)
    click.echo(machine("balog", "msgspec"))
    click.echo(f"medians of {rounds} rounds, a core's own time; one stream of ten fields, the bookmark at its end\n")

    def way(name: str) -> Callable[[], float]:
        count = max(int(records * PEERS[name][3]), 2 * SHORT)
        # A few records can take less than starts differ by; no toolkit writes one in 0.1 µs.
        return lambda: max(1e-7, (run(name, count, len) - run(name, SHORT, len)) / (count - SHORT))

    seconds = interleaved({name: way(name) for name in names}, rounds)
    table = medians(seconds)
    ours = table["balog.tap, one by one"]
    click.echo(f"{'':32}{'µs':>8}{'records/s':>12}{'× one by one':>14}")
    for name, took in table.items():
        click.echo(f"{name:32}{took * 1e6:8.2f}{1 / took:12,.0f}{ours / took:14.3f}")
    for peer, target in (("singer-sdk", 3), ("singer-python", 2)):
        if found := [name for name in table if name.startswith(peer)]:
            quickest = min(found, key=table.__getitem__)
            show_ratio(f"{peer} at its quickest", seconds[quickest], seconds["balog.tap, one by one"], f"≥ {target}")


if __name__ == "__main__":
    main()
