"""What commands print: lines for people on stderr, tables, and a progress bar on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import click

__all__ = ["print_table", "printable", "progress_bar", "reporter"]

_QUIET_SECONDS = 2.0  # before a bar appears


def reporter(command: str) -> Callable[[str], None]:
    """Return a function that prints a line on stderr, prefixed by a command's name."""

    def report(message: str) -> None:
        click.echo(f"{command}: {message}", err=True)

    return report


def print_table(rows: Sequence[Sequence[str]], *, numbers: bool = False) -> None:
    """Print rows in columns as wide as their widest cell.

    Args:
        rows: the cells; the first row is the header.
        numbers: whether all columns but the first are aligned to the right.
    """
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        cells = [
            cell.rjust(width) if numbers and index else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths))
        ]
        click.echo("  ".join(cells).rstrip())


def printable(text: str, keep: str = "") -> str:
    """Return a text with its control characters escaped, so that a terminal does not act on them.

    Args:
        text: any text.
        keep: control characters that stay.
    """
    return "".join(char if char.isprintable() or char in keep else f"\\u{ord(char):04x}" for char in text)


@contextmanager
def progress_bar(label: str, total: int | None) -> Iterator[Callable[[int, str], None]]:
    """Show a progress bar on stderr once the work has taken two seconds, if stderr is a terminal.

    Args:
        label: the verb in front of the bar.
        total: the number of steps; None if it is not known.

    Yields:
        A function of the steps done and a text behind the bar.
    """
    try:
        if not sys.stderr.isatty():
            raise ImportError
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
    except ImportError:
        yield lambda done, text: None
        return
    began = time.monotonic()
    columns = [TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[text]}"), TimeElapsedColumn()]
    if total is not None:
        columns.insert(2, TaskProgressColumn())
    with Progress(*columns, console=Console(stderr=True), auto_refresh=False, transient=True) as bar:
        task = bar.add_task(label, total=total, visible=False, text="")

        def show(done: int, text: str) -> None:
            if time.monotonic() - began >= _QUIET_SECONDS:
                bar.update(task, completed=done, visible=True, text=text)
                bar.refresh()

        yield show
