"""``balog top``."""

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
from balog.errors import BalogError, MissingExtraError

if TYPE_CHECKING:
    from rich.table import Table

_SETTLE_SECONDS = 3.0
_STEP_SECONDS = 0.25
_FILE_WIDTH = 160


@click.command()
@click.option("--once", is_flag=True, help="Print one table, of two looks a second apart, and end.")
@click.option("--json", "as_json", is_flag=True, help="The same as one JSON document.")
@click.option(
    "--every",
    type=click.FloatRange(0.2, 3600),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="How often the live table is drawn.",
)
def command(once: bool, as_json: bool, every: float) -> None:
    """Show what each broker and sidecar of this user is doing, and which side of it is slow.

    Processes whose streams meet are one pipeline and stand in its order, the programs between them included. A stage
    that waits for reading has something slow before it, one that waits for writing something slow behind it. Ctrl-C
    ends it.

    \b
    balog top
    balog top --once --json | jq '.stages[] | select(.waiting == "writing")'
    """
    try:
        if as_json:
            sys.stdout.buffer.write(msgspec.json.encode({"stages": _look_twice(every=1.0)}) + b"\n")
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
            console.print(_table(_look_twice(every=1.0)))
            return
        watch = PipeMonitor()
        with Live(_table(_look(watch)), console=console, auto_refresh=False, screen=True) as live:
            while True:
                live.update(_table(_look(watch)), refresh=True)
                time.sleep(every)
    except KeyboardInterrupt:
        return


def _look(watch: PipeMonitor) -> list[Row]:
    try:
        return watch.look()
    except OSError as error:
        raise BalogError(f"what runs cannot be read: {error}") from None


def _look_twice(every: float) -> list[Row]:
    """Look until every stage has been seen to write twice, which a living one does within two seconds."""
    watch = PipeMonitor()
    rows = _look(watch)
    until = time.monotonic() + _SETTLE_SECONDS
    time.sleep(every)
    while rows := _look(watch):
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
            Text("\n".join(_sink(name, figures) for name, figures in row.sinks.items())),
            style="dim" if row.stage == "other" else "",
        )
        last = row.pipeline
    return table


def _waits(row: Row) -> str:
    if row.waiting is None:
        return "–"
    share = {"reading": row.reading, "writing": row.writing}.get(row.waiting)
    return row.waiting if share is None else f"{row.waiting} {share:.0%}"


def _sink(name: str, figures: dict[str, object]) -> str:
    told = [f"{figures.get('delivered', 0)} delivered"]
    told += [f"{figures[key]} {key}" for key in ("waiting", "spooled", "dead", "dropped") if figures.get(key)]
    if figures.get("is_failing"):
        told.append("failing")
    return f"{name}: {', '.join(told)}"


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
