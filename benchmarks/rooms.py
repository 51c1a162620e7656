"""Run a short benchmark of each room, one after another, and print their ratios: some four minutes in all.

    python -m benchmarks.rooms

It is for the moment before a change of a hot path lands: run it without the change, then with it. A ratio that is
behind the last one on this machine by more than the spread of its rounds is marked.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time

import click

RUNS = {
    "log": "log --events 1000 --rounds 5",
    "broker": "pipe --size 50 --rounds 3",
    "sinks": "sinks --events 10000 --rounds 3 --sink statsd --sink elastic --sink topic",
    "consumers": "acting --only end-to-end --events 20000 --rounds 3",
    "service": "serve --rounds 3",
    "registry": "validate",
    "tap": "tap --records 20000 --rounds 3",
    "analytics": "report --size 100 --rounds 3",
}


@click.command()
@click.argument("rooms", nargs=-1, type=click.Choice(list(RUNS)))
def main(rooms: tuple[str, ...]) -> None:
    """Run the short benchmarks of all rooms, or of those named."""
    for room in rooms or RUNS:
        module, *arguments = RUNS[room].split()
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", f"benchmarks.{module}", *arguments], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise click.ClickException(f"{room}: {RUNS[room]} failed: {done.stderr.strip().splitlines()[-1]}")
        click.echo(f"{room}, {time.monotonic() - began:.0f} s")
        for ratio in re.findall(r"^ratio: (.+)", done.stdout, re.MULTILINE):
            click.echo(f"  {ratio}")


if __name__ == "__main__":
    main()
