"""The page of a backtest of generated events, and what a reader finds in its tables."""

from datetime import timedelta
from html.parser import HTMLParser
from typing import Any

from balog.event import decode
from balog.watch.config.monitors import MonitorConfig
from balog.watch.history.backtest import Backtest, run_backtest
from balog.watch.history.history_page import make_page
from balog.watch.history.tracks import Tracks
from tests.watch.history_events import BEGIN


def made_page(lines: list[str], monitors: list[MonitorConfig], days: int, source: str = "a") -> tuple[str, Backtest]:
    since, until = BEGIN.timestamp(), (BEGIN + timedelta(days=days)).timestamp()
    tracks = Tracks(since)
    result = run_backtest(monitors, map(decode, lines), since, until, tracks.add)
    return make_page(result, tracks, source), result


class PageTables(HTMLParser):
    """The rows of each table by its label; a cell is its exact number or time, else its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tables: dict[str, list[list[Any]]] = {}
        self._label = ""
        self._cell: list[Any] | None = None
        self._exact: Any = None
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if given.get("role") == "region":
            self._label = given["aria-label"] or ""
            self.tables[self._label] = []
        elif tag == "tr":
            self.tables[self._label].append([])
        elif tag in ("td", "th"):
            self._cell, self._exact = [], None
        elif tag == "data" and self._cell is not None:
            self._exact = float(given["value"] or "")
        elif tag == "time" and self._cell is not None:
            self._exact = given["datetime"]

    def handle_data(self, data: str) -> None:
        if self._cell is not None:
            self._cell.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th") and self._cell is not None:
            text = "".join(self._cell).strip()
            self.tables[self._label][-1].append(text if self._exact is None else self._exact)
            self._cell = None
