"""What commands print: lines for people on stderr, tables, and a progress bar on a terminal."""

from __future__ import annotations

import getpass
import os
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import click
import msgspec

from balog.config import locate
from balog.counts import counted
from balog.error_redaction import redact_error
from balog.errors import BalogError, ConfigError, ConfigProblems
from balog.signals import StopSignals

_QUIET_SECONDS = 2.0  # before a bar appears


def reporter(command: str) -> Callable[[str], None]:
    """Return a function that prints a line on stderr, prefixed by a command's name."""

    def report(message: str) -> None:
        click.echo(f"{command}: {redact_error(message)}", err=True)

    return report


def print_errors(command: str, error: BalogError) -> int:
    """Print an error, or all problems of a config, one line each, and return the exit code."""
    for problem in error.problems if isinstance(error, ConfigProblems) else [error]:
        text = _redacted(problem).removeprefix(f"{command} ")  # its name once
        click.echo(f"{command}: {text}", err=True)
    return error.exit_code


def _redacted(error: BalogError) -> str:
    """Return an error's text without secrets. The path in a config stays: ``$.password: …`` is none."""
    reason = error.reason if isinstance(error, ConfigError) else str(error)
    return str(error).replace(reason, redact_error(reason))


def exit_if_invalid(path: Path, problems: Sequence[ConfigError], code: int, rest: str = "") -> None:
    """Print the problems of a config with their lines and columns, and exit, if there are any.

    Args:
        code: the exit code.
        rest: the end of the last line.
    """
    for problem in locate(problems):
        click.echo(_redacted(problem), err=True)
    if problems:
        click.echo(f"{path}: {counted(len(problems), 'problem')}{rest}", err=True)
        sys.exit(code)


class FirstLines:
    """Prints the first lines of many on stderr, and counts all.

    Args:
        report: prints a line.
        limit: the number of lines to print.
        last: the line after those, printed once; "" for none.
    """

    def __init__(self, report: Callable[[str], None], limit: int = 20, last: str = "") -> None:
        self.count = 0
        self._report, self._limit, self._last = report, limit, last

    def __call__(self, line: str) -> None:
        """Print or count a line."""
        self.count += 1
        if self.count <= self._limit:
            self._report(line)
        elif self._last and self.count == self._limit + 1:
            self._report(self._last)

    @property
    def hidden(self) -> int:
        """The number of lines that were not printed."""
        return max(self.count - self._limit, 0)


def exit_after(stop: StopSignals, *, failed: bool) -> None:
    """Exit with 128 plus the number of the signal that came, or with 1 after a failure; else return.

    Raises:
        SystemExit: a signal came, or something failed.
    """
    if stop.number is not None:
        sys.exit(128 + stop.number)
    if failed:
        sys.exit(1)


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


def print_rich_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> bool:
    """Print a table whose cells may have several lines. Return False if stdout is no terminal or rich is missing."""
    if not sys.stdout.isatty():
        return False
    try:
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError:  # without the extra embedded
        return False
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in head:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)
    return True


def print_json_lines(values: Iterable[Any]) -> None:
    """Print each value as JSON, one a line."""
    for value in values:
        click.echo(msgspec.json.encode(value))


def utc(when: datetime) -> str:
    """Return a time in UTC as ``2026-11-20 07:46:12Z``."""
    return when.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M:%SZ")


def plain(text: str, replacement: str = "�") -> str:
    """Return a text with its control characters replaced."""
    return "".join(char if char.isprintable() else replacement for char in text)


def user_at_host() -> str:
    """Return who runs the command, such as ``ana@host``, for records of who did what."""
    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except (KeyError, OSError):  # a container whose user has no name
        return f"{os.getuid()}@{socket.gethostname()}"


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
