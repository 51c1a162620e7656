"""What commands print: lines for people on stderr, tables, and a progress bar on a terminal."""

from __future__ import annotations

import getpass
import os
import socket
import sys
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path

import click

from balog.common.config import locate
from balog.common.errors import BalogError, ConfigError, ConfigProblems, redact_error
from balog.common.signals import StopSignals
from balog.common.text import counted


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
    """

    def __init__(self, report: Callable[[str], None], limit: int = 20) -> None:
        self.count = 0
        self._report, self._limit = report, limit

    def __call__(self, line: str) -> None:
        """Print or count a line."""
        self.count += 1
        if self.count <= self._limit:
            self._report(line)

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


def utc(when: datetime) -> str:
    """Return a time in UTC as ``2026-11-20 07:46:12Z``."""
    return when.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M:%SZ")


def age(when: datetime) -> str:
    """Return how long ago a time was, such as ``3 hours ago``."""
    seconds = max(0.0, (datetime.now(timezone.utc) - when).total_seconds())
    steps = ((86_400, "days"), (3600, "hours"), (60, "minutes"))
    step, unit = next(((step, unit) for step, unit in steps if seconds >= 2 * step), (1, "seconds"))
    return f"{seconds // step:.0f} {unit} ago"


def user_at_host() -> str:
    """Return who runs the command, such as ``ana@host``, for records of who did what."""
    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except (KeyError, OSError):  # a container whose user has no name
        return f"{os.getuid()}@{socket.gethostname()}"


def escaped(text: str, keep: str = "") -> str:
    """Return a text with its control characters escaped, so that a terminal does not act on them.

    Args:
        text: any text.
        keep: control characters that stay.
    """
    return "".join(char if char.isprintable() or char in keep else f"\\u{ord(char):04x}" for char in text)
