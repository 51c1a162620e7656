"""The page of a backtest: ``balog watch … --html FILE``."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import click

from balog.errors import MissingExtraError
from balog.pages.files import check_page_path, write_page
from balog.watch.backtest import Backtest
from balog.watch.kinds.base import Verdict
from balog.watch.series import Series
from balog.watch.tracks import Tracks


class BacktestPage:
    """Records the verdicts of a backtest, and writes its page.

    Args:
        path: the file of the page.

    Raises:
        ConfigError: the folder of the file does not exist.
        MissingExtraError: the packages of pages are not installed.
    """

    def __init__(self, path: Path) -> None:
        if any(find_spec(name) is None for name in ("jinja2", "vl_convert")):
            raise MissingExtraError("balog watch --html", "embedded")
        check_page_path(path)
        self._path = path
        self._tracks = Tracks(0.0)

    def record(self, since: float) -> Callable[[Series, Verdict, float], None]:
        """Return a function that records each verdict from a time on, in seconds since the epoch."""
        self._tracks = Tracks(since)
        return self._tracks.add

    def save(self, result: Backtest, source: str) -> None:
        """Write the page.

        Args:
            source: where the events are, for people.

        Raises:
            ConfigError: the file cannot be written.
        """
        from balog.watch.history_page import make_page

        write_page(self._path, make_page(result, self._tracks, source))
        click.echo(f"balog watch: wrote {self._path}", err=True)
