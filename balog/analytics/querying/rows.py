"""Writes rows in a format: a table for people, CSV, or JSON lines. Every row is the text of a JSON object."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import IO, Any

import msgspec

from balog.common.errors import ConfigError
from balog.ui.formats import printable

TABLE_ROWS = 200
"""Rows of a table that are shown without a limit."""


def shown_rows(form: str, limit: int | None) -> int | None:
    """Return the limit of a format."""
    return TABLE_ROWS if form == "table" and limit is None else limit


def write_rows(
    columns: Sequence[str], rows: Iterator[str], form: str, out: IO[str], limit: int | None
) -> tuple[int, bool]:
    """Write at most ``limit`` rows; return their number, and whether there are more.

    Args:
        columns: their names.
        rows: the text of an object for each row, with a value for each column.
        form: ``table``, ``csv`` or ``jsonl``.
        out: where to write.
        limit: the most rows; None for all.
    """
    writers = {"table": _table, "csv": _csv, "jsonl": _jsonl}
    written = writers[form](columns, islice(rows, limit), out)
    return written, limit is not None and written == limit and next(rows, None) is not None


def need_unique(columns: Sequence[str]) -> None:
    """Check that columns have different names, which JSON and Parquet need.

    Raises:
        ConfigError: two have the same.
    """
    twice = [name for name, count in Counter(columns).items() if count > 1]
    if twice:
        raise ConfigError(f"two columns are called {twice[0]!r}; give one another name with AS", "SQL")


def _values(row: str) -> list[Any]:
    return list(msgspec.json.decode(row).values())


def _text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return msgspec.json.encode(value).decode()


def _table(columns: Sequence[str], rows: Iterator[str], out: IO[str]) -> int:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    kept = [_values(row) for row in rows]
    for number, name in enumerate(columns):
        measured = [row[number] for row in kept if row[number] is not None]
        numeric = measured and all(isinstance(value, (int, float)) for value in measured)
        table.add_column(Text(printable(name)), justify="right" if numeric else "left", overflow="fold")
    for row in kept:
        table.add_row(*(Text(printable(_text(value))) if value is not None else Text("–", "dim") for value in row))
    console = Console(file=out)
    if not console.is_terminal:
        console = Console(file=out, width=1_000, no_color=True, highlight=False)
    console.print(table)
    return len(kept)


def _csv(columns: Sequence[str], rows: Iterator[str], out: IO[str]) -> int:
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    count = 0
    for count, row in enumerate(rows, 1):  # noqa: B007
        writer.writerow(map(_text, _values(row)))
    return count


def _jsonl(columns: Sequence[str], rows: Iterator[str], out: IO[str]) -> int:
    count = 0
    for count, row in enumerate(rows, 1):  # noqa: B007
        out.write(_with_names(columns, row) + "\n")
    return count


def _with_names(columns: Sequence[str], row: str) -> str:
    raw = msgspec.json.decode(row, type=dict[str, msgspec.Raw])
    return msgspec.json.encode(dict(zip(columns, raw.values()))).decode()
