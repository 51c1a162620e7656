"""``balog top``: show live what each broker and sidecar does."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
import msgspec

from balog.broker.monitor import PipeMonitor, Row
from balog.broker.status import status_folder
from balog.cli import options
from balog.errors import BalogError, MissingExtraError

if TYPE_CHECKING:
    from rich.table import Table

_SETTLE_SECONDS = 3.0
_STEP_SECONDS = 0.25
_FILE_WIDTH = 160


@click.command()
@click.option("--once", is_flag=True, help="Print one table, of two samples a second apart, and exit.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and exit.")
@options.seconds("--every", least=0.2, most=3600, default=1.0, help="Interval of the live table.")
def command(once: bool, as_json: bool, every: float) -> None:
    """Show what each of your brokers and sidecars is doing, and which side of it is slow.

    Processes that are connected by pipes are one pipeline, shown in its order with the programs between them. A stage
    that waits for reading has a slow stage before it; one that waits for writing has a slow stage after it. Ctrl-C
    ends the command.

    \b
    balog top
    balog top --once --json | jq '.stages[] | select(.waiting == "writing")'
    """
    try:
        if as_json:
            sys.stdout.buffer.write(msgspec.json.encode({"stages": _sample_twice(every=1.0)}) + b"\n")
            sys.stdout.buffer.flush()
            return
        try:
            from rich.console import Console
            from rich.live import Live
        except ImportError:
            raise MissingExtraError("balog top", "top") from None
        console = Console()
        if not console.is_terminal and "COLUMNS" not in os.environ:
            console = Console(width=_FILE_WIDTH)  # a file has no width, and what is cut off can't be searched for
        if once or not console.is_terminal:
            console.print(_table(_sample_twice(every=1.0)))
            return
        watch = PipeMonitor()
        with Live(_table(_sample(watch)), console=console, auto_refresh=False, screen=True) as live:
            while True:
                live.update(_table(_sample(watch)), refresh=True)
                time.sleep(every)
    except KeyboardInterrupt:
        return


def _sample(watch: PipeMonitor) -> list[Row]:
    try:
        return watch.look()
    except OSError as error:
        raise BalogError(f"the status of the running processes cannot be read: {error}") from None


def _sample_twice(every: float) -> list[Row]:
    """Sample until every stage has written its status twice, which a live one does within two seconds."""
    watch = PipeMonitor()
    rows = _sample(watch)
    until = time.monotonic() + _SETTLE_SECONDS
    time.sleep(every)
    while rows := _sample(watch):
        if watch.is_settled or time.monotonic() >= until:
            break
        time.sleep(_STEP_SECONDS)
    return rows


def _table(rows: Sequence[Row]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("pipeline", justify="right")
    for name in ("stage", "pid"):
        table.add_column(name, no_wrap=True)
    for name in ("records/s", "bytes/s", "bytes"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("waits for", no_wrap=True)
    table.add_column("sinks", overflow="fold")
    if not rows:
        table.caption = f"no broker and no sidecar is running (looked in {status_folder()})"
    last = 0
    for row in rows:
        name = row.label if row.stage == "other" else f"{row.stage} {row.label}".strip()
        table.add_row(
            str(row.pipeline) if row.pipeline != last else "",
            Text(name),
            str(row.pid),
            _number(row.records_per_second),
            _size(row.bytes_per_second),
            _size(row.bytes),
            Text(_waits(row), style={"reading": "cyan", "writing": "yellow"}.get(row.waiting or "", "")),
            Text("\n".join(_sink(name, stats) for name, stats in row.sinks.items())),
            style="dim" if row.stage == "other" else "",
        )
        last = row.pipeline
    return table


def _waits(row: Row) -> str:
    if row.waiting is None:
        return "–"
    share = {"reading": row.reading, "writing": row.writing}.get(row.waiting)
    return row.waiting if share is None else f"{row.waiting} {share:.0%}"


def _sink(name: str, stats: dict[str, object]) -> str:
    parts = [f"{stats.get('delivered', 0)} delivered"]
    parts += [f"{stats[key]} {key}" for key in ("waiting", "spooled", "dead", "dropped") if stats.get(key)]
    if stats.get("is_failing"):
        parts.append("failing")
    return f"{name}: {', '.join(parts)}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"


def _size(value: float | None) -> str:
    if value is None:
        return "–"
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:,.0f} {unit}" if unit == "B" else f"{value:,.1f} {unit}"
        value /= 1000
    return f"{value:,.1f} TB"
