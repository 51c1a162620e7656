"""The report in a notebook: an object that shows the page, saves it, and holds its numbers."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from balog.analytics.reading.inputs import absolute, read_inputs
from balog.analytics.reporting.links import parse_link
from balog.analytics.reporting.model import Report, encode
from balog.analytics.reporting.page import make_page
from balog.analytics.reporting.query import ReportQuery, parse_query
from balog.analytics.reporting.report import empty_report, make_local_report, make_raw_report, wanted_files
from balog.analytics.tables.catalogs.location import are_tables
from balog.common.errors import ConfigError
from balog.common.storage.local_files import replace_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FRAME = (
    '<iframe title="balog report" sandbox="allow-scripts allow-popups allow-popups-to-escape-sandbox" '
    'style="width: 100%; height: {height}px; border: 0" srcdoc="{page}"></iframe>'
)
HEIGHT = 720
"""The height of the page in a notebook, in pixels; it scrolls."""


class NotebookReport:
    """A report that a notebook shows as its page.

    Attributes:
        report: the numbers.
        page: the page's HTML, the same as that of ``balog report --html``.
    """

    def __init__(self, report: Report, page: str) -> None:
        self.report, self.page = report, page

    @property
    def document(self) -> dict[str, Any]:
        """The document of ``balog report --json``, see ``schemas/report/1.0.0.json``."""
        document: dict[str, Any] = json.loads(encode(self.report))
        return document

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page atomically, or the document if the name ends with ``.json``; return the path.

        Raises:
            ConfigError: the file can't be written.
        """
        target = Path(path)
        text = encode(self.report) + "\n" if target.suffix == ".json" else self.page
        try:
            replace_file(target, text.encode())
        except OSError as error:
            raise ConfigError(f"cannot be written: {error.strerror}; give another path", str(path)) from None
        return target

    def _repr_html_(self) -> str:
        """Return the page in a frame that can't reach the notebook."""
        return _FRAME.format(height=HEIGHT, page=html.escape(self.page))

    def __repr__(self) -> str:
        contents = self.report
        totals = f"{contents.events:,} events, {contents.errors:,} errors, {contents.totals['runs']:,} runs"
        return f"<Report of {', '.join(contents.sources)}: {totals}>"


def report(
    spark: SparkSession | str | os.PathLike[str], *sources: str | os.PathLike[str], since: str = "", until: str = "",
    compare: str = "", where: str = "", links: Sequence[str] = (),
) -> NotebookReport:  # fmt: skip
    """Report what ran, what failed, what slowed down, and since when.

    Args:
        spark: a session of ``balog.analytics.session``, or the first source: DuckDB makes the report then.
        sources: files, folders, globs, URLs and topics of events, or one location of tables.
        since, until, compare, where, links: the options of ``balog report``.

    Raises:
        ConfigError: a source or an option is not valid, or needs Spark.
        MissingExtraError: a package is not installed.
    """
    session = None if isinstance(spark, (str, os.PathLike)) else spark
    given = [os.fspath(source) for source in ((*sources,) if session is not None else (spark, *sources))]  # type: ignore[arg-type]
    if not given:
        raise ConfigError("nothing to report; give a file, a folder or the location of tables", "analytics.report")
    query = parse_query(since, until, compare, where)
    templates = [parse_link(link) for link in links]
    contents = _of_tables(session, given[0], query) if are_tables(given) else _of_sources(session, given, query)
    return NotebookReport(contents, make_page(contents, templates))


def _of_tables(spark: SparkSession | None, location: str, query: ReportQuery) -> Report:
    if spark is not None:
        from balog.analytics.reporting.spark_report import make_report

        return make_report(spark, [location], query)
    local_report = make_local_report(location, query)
    if local_report is None:
        raise ConfigError(
            "DuckDB reports tables with rollups in a folder, without a condition; give a Spark session first", location
        )
    return local_report


def _of_sources(spark: SparkSession | None, sources: list[str], query: ReportQuery) -> Report:
    paths = [absolute(source) for source in sources]
    inputs = read_inputs({"paths": json.dumps(paths)})
    files = wanted_files(inputs, query)
    if not files and not inputs.topics:
        return empty_report(paths, query)
    if spark is not None:
        from balog.analytics.reporting.spark_report import make_report

        return make_report(spark, paths, query, len(files))
    if inputs.topics:
        raise ConfigError("topics are read by Spark; give a Spark session first", inputs.topics[0])
    return make_raw_report(paths, query, files)
