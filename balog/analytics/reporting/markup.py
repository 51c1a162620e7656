"""The pieces that the page is made of: cells, tables, sections. Texts come in as they are and go out escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from html import escape

from balog.analytics.reporting.charts import Chart
from balog.analytics.reporting.formats import count, minute, printable, when

__all__ = ["cell", "head_cell", "moment", "number", "section", "shown_of", "table", "text_cell", "words"]

_LONGEST = 400  # characters of a text in the page


def words(text: str | None) -> str:
    """Give a text for a place between tags or in an attribute."""
    shown = printable(text)
    return escape(shown if len(shown) <= _LONGEST else shown[: _LONGEST - 1] + "…", quote=True)


def number(value: float | None, shown: str) -> str:
    """Give a number as people read it, with the exact one beside it in ``<data>``."""
    return shown if value is None else f'<data value="{value!r}">{escape(shown)}</data>'


def cell(value: float | None, shown: str, mark: str = "", part: float | None = None) -> str:
    """Give the cell of a number; ``part``, from 0 to 1, draws a bar behind it."""
    bar = "" if part is None else f' style="--part:{min(max(part, 0), 1):.1%}"'
    names = " ".join(name for name in ("number", mark, "bar" if part is not None else "") if name)
    return f'<td class="{names}"{bar}>{number(value, shown)}</td>'


def text_cell(text: str | None) -> str:
    """Give the cell of a text."""
    return f"<td>{words(text)}</td>"


def head_cell(inner: str) -> str:
    """Give a row's first cell; ``inner`` is markup."""
    return f'<th scope="row">{inner}</th>'


def moment(value: datetime | None, *, exact: bool = False) -> str:
    """Give a moment, to the minute unless ``exact``."""
    if value is None:
        return "–"
    return f'<time datetime="{value.isoformat()}">{when(value) if exact else minute(value)}</time>'


def table(name: str, heads: Iterable[str], rows: Sequence[str], label: str) -> str:
    """Give a table that scrolls by keyboard; a head that begins with ``#`` is a column of numbers."""
    head = "".join(
        f'<th scope="col" class="number">{escape(text[1:])}</th>'
        if text.startswith("#")
        else f'<th scope="col">{escape(text)}</th>'
        for text in heads
    )
    body = "\n".join(rows)
    return f"""<div class="scroll" role="region" aria-label="{escape(label, quote=True)}" tabindex="0">
<table id="{name}-table">
<thead><tr>{head}</tr></thead>
<tbody>
{body}
</tbody>
</table></div>"""


def section(name: str, title: str, *parts: str, chart: Chart | None = None, note: str = "") -> str:
    """Give a section under its heading, with a chart before its parts."""
    figure = ""
    if chart is not None:
        pictures = "".join(
            f'<div class="{width}">{svg}</div>' for width, svg in (("wide", chart.wide), ("narrow", chart.narrow))
        )
        figure = f'<figure role="img" aria-label="{escape(chart.words, quote=True)}">{pictures}</figure>\n'
    below = f'\n<p class="note">{note}</p>' if note else ""
    body = "\n".join(part for part in parts if part)
    return f"""<section id="{name}" aria-labelledby="{name}-title" tabindex="-1">
<h2 id="{name}-title">{title}</h2>
{figure}{body}{below}
</section>
"""


def shown_of(shown: int, total: int, what: str) -> str:
    """Say how many of how many are shown, if not all."""
    if total <= shown:
        return ""
    return f"{count(shown)} of {count(total)} {what} are shown; balog report --json has more."
