"""``balog query``: run SQL on the tables of ``balog load``, and on raw events."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

import click

from balog.cli import options
from balog.cli.output import reporter
from balog.cli.spark import SparkPlace, spark_options, spark_packages
from balog.errors import BalogError, ConfigError, MissingExtraError
from balog.storage.local_files import replacing

if TYPE_CHECKING:
    from pyspark.errors import PySparkException

    from balog.analytics.embedded.statement import Question
    from balog.analytics.embedded.stored_tables import ReadableTables

    Written = tuple[int, bool]

_FORMATS = ("table", "csv", "json", "jsonl", "parquet")
_ENGINES = ("auto", "duckdb", "spark")

LARGEST = 5_000_000_000
"""``--engine auto`` uses DuckDB for tables of up to this many bytes, compressed as they are stored."""


@click.command()
@click.argument("sql")
@click.option(
    "--tables",
    "location",
    metavar="PLACE",
    help="The tables' location: a folder, or hive:…, delta:….",
)
@options.repeated(
    "--source",
    "sources",
    metavar="PATH",
    help="Raw events that SQL may read as balog.`PATH`: a file, folder, glob, URL or topic, and all in the folder.",
)
@click.option("--format", "form", type=click.Choice(_FORMATS), default="table", show_default=True)
@click.option(
    "--output", type=options.FilePath(dir_okay=False, path_type=Path), help="Write to this file, not to stdout."
)
@options.integer("--limit", least=0, help="Write at most this many rows; a table shows 200 by default.")
@click.option(
    "--engine",
    type=click.Choice(_ENGINES),
    default="auto",
    show_default=True,
    help="auto: DuckDB in this process for tables of up to 5 GB in a folder, Spark for all others.",
)
@spark_options
def command(
    sql: str, location: str | None, sources: tuple[str, ...], form: str, output: Path | None, limit: int | None,
    engine: str, spark_place: SparkPlace,
) -> None:  # fmt: skip
    """Run SQL on the tables of PLACE, in Spark's dialect, and on raw events.

    SQL is one SELECT (or WITH …, TABLE …), SHOW TABLES, SHOW COLUMNS IN, DESCRIBE or EXPLAIN; - reads it from stdin. It
    can only read the tables and the sources: statements that write, change settings, open other paths or run programs
    are rejected.

    \b
    balog query "SELECT cls_type, count(*) FROM events GROUP BY ALL" --tables tables
    balog query "SHOW TABLES" --tables tables
    balog query - --tables tables --format csv < question.sql
    balog query 'SELECT level, count(*) FROM balog.`dumps` GROUP BY ALL' --source dumps
    """
    began = time.monotonic()
    _need_packages(engine)
    from balog.analytics.querying.policy import check
    from balog.analytics.reading.inputs import EMPTY
    from balog.analytics.tables import check_location, is_tables

    text = sys.stdin.read() if sql == "-" else sql
    check(text, sources=sources)  # a statement that is not allowed fails before anything starts
    _check_output(form, output, spark_place)
    if not all(map(str.strip, sources)):
        raise ConfigError(EMPTY, "--source")
    if location is None and not sources:
        raise ConfigError("nothing to ask; give --tables PLACE or --source PATH", "the command line")
    if location is not None:
        check_location(location)
    if location is not None and not is_tables(location):
        raise ConfigError("there are no tables; make some: balog load SOURCE --tables PLACE", location)
    asked = _Asked(text, location, sources, form, output, limit)
    rows, more = _answer_embedded(asked, engine, spark_place) or _answer_on_spark(asked, spark_place)
    rest = "; there are more, give a larger --limit" if more else ""
    click.echo(
        f"balog query: {rows:,} {'row' if rows == 1 else 'rows'} in {time.monotonic() - began:.1f} s{rest}", err=True
    )


class _Asked(NamedTuple):
    """What the command line asks for: a statement, what it may read, and where the answer goes."""

    text: str
    location: str | None
    sources: tuple[str, ...]
    form: str
    output: Path | None
    limit: int | None


def _need_packages(engine: str) -> None:
    """Check that the packages of an engine are installed.

    Raises:
        MissingExtraError: they are not.
    """
    if engine != "spark" and find_spec("duckdb") is None and (engine == "duckdb" or not _has_spark()):
        raise MissingExtraError("balog query", "embedded")
    if engine == "spark" and not _has_spark():
        raise MissingExtraError("balog query --engine spark", "spark")


def _has_spark() -> bool:
    return find_spec("pyspark") is not None


def _check_output(form: str, output: Path | None, spark_place: SparkPlace) -> None:
    if form == "parquet" and output is None:
        raise ConfigError("a Parquet file is binary; give --output FILE", "--format parquet")
    if form == "parquet" and (spark_place.remote or not (spark_place.master or "local").startswith("local")):
        raise ConfigError("Spark would write it on the cluster's machines; take another format", "--format parquet")
    if output is not None and not output.absolute().parent.is_dir():
        raise ConfigError("its folder does not exist; make it, or give another --output", str(output))


def _answer_embedded(asked: _Asked, engine: str, spark_place: SparkPlace) -> Written | None:
    """Write the answer of the embedded engine; return None if Spark has to answer.

    Raises:
        ConfigError: the statement is wrong, or ``--engine duckdb`` can't answer it.
    """
    elsewhere = _elsewhere(asked, spark_place)
    if engine == "duckdb" and elsewhere:
        raise ConfigError(f"{elsewhere} needs Spark; leave out --engine duckdb, or give --engine spark", "--engine")
    if engine == "spark" or elsewhere or find_spec("duckdb") is None:
        return None
    from balog.analytics.embedded.statement import ask
    from balog.analytics.embedded.values import SparkNeeded

    try:
        with _tables(asked) as (tables, query):
            question = ask(tables, query)
            if engine == "auto" and question.size > LARGEST:
                return None
            _read_sources(tables, question.reads)
            return _write_answer(asked, question)
    except SparkNeeded as needed:
        _leave_to_spark(engine, needed)
        return None


def _elsewhere(asked: _Asked, spark_place: SparkPlace) -> str:
    """Return what only Spark can reach, or ""."""
    from balog.analytics.tables.location import CATALOGS

    if asked.location is not None and asked.location.startswith(CATALOGS):
        return asked.location.partition(":")[0]
    return "--master" if spark_place.master else "--remote" if spark_place.remote else ""


def _leave_to_spark(engine: str, needed: ConfigError) -> None:
    """Note that Spark answers a statement.

    Raises:
        ConfigError: Spark is not to be used, or is not installed.
    """
    if engine == "duckdb" or not _has_spark():
        raise needed
    click.echo(f"balog query: {str(needed).partition(';')[0]}: answered by Spark", err=True)


@contextmanager
def _tables(asked: _Asked) -> Iterator[tuple[ReadableTables, str]]:
    """Open the tables and the raw events of a statement, and check it again, with the names of the tables."""
    from balog.analytics.embedded.stored_tables import StoredTables
    from balog.analytics.querying.policy import check

    stored = StoredTables(asked.location) if asked.location is not None else None
    checked = check(asked.text, stored.names() if stored is not None else [], asked.sources)
    if stored is not None and not checked.paths:
        yield stored, checked.query
        return
    from balog.analytics.embedded.raw_tables import QueryTables
    from balog.analytics.querying.sources import open_source

    raw = [open_source(path, asked.sources) for path in checked.paths]
    with QueryTables(stored, {source.name: source.options for source in raw}, checked.words) as tables:
        yield tables, checked.query


def _read_sources(tables: ReadableTables, names: list[str]) -> None:
    """Read the raw events of some tables, with progress on a terminal."""
    if not hasattr(tables, "read"):
        return
    from balog.analytics.progress import progress

    with progress("Reading files", reporter("balog query")) as display, display.counting():
        tables.read(names, display.folder)


def _write_answer(asked: _Asked, question: Question) -> Written:
    from balog.analytics.embedded.values import SparkNeeded
    from balog.analytics.querying.rows import need_unique, shown_rows, write_rows

    form, output = asked.form, asked.output
    if form in ("json", "jsonl", "parquet"):
        need_unique(question.names)
    limit = shown_rows(form, asked.limit)
    is_partial = False
    try:
        if form == "parquet" and output is not None:
            with replacing(output) as file:
                return question.write_parquet(file, limit), False
        with question.rows(limit) as rows:
            is_partial = output is None and form != "table"
            return _to_output(lambda out: write_rows(question.names, rows, form, out, limit), output)
    except SparkNeeded as needed:
        if is_partial:  # Spark would write the first rows a second time
            raise BalogError(f"the rows above are not all: {needed}") from None
        raise
    except OSError as error:
        if output is None:
            raise
        raise _unwritable(output, error) from None


def _answer_on_spark(asked: _Asked, spark_place: SparkPlace) -> Written:
    with spark_packages("balog query"):
        from balog.analytics.progress import progress
        from balog.analytics.querying.output import write_parquet, write_text
        from balog.analytics.querying.statement import ask, explain_failure
        from balog.analytics.tables import open_tables
        from balog.analytics.tables.location import session_settings

    _, location, sources, form, output, limit = asked
    if form == "parquet" and spark_place.server:
        raise ConfigError("Spark would write it on the server's machine; take another format", "--format parquet")

    def explain(error: PySparkException) -> str:
        return f"SQL: {explain_failure(error, asked.text)}"

    settings = session_settings(location or "")
    with (
        progress(spark_place.waiting, reporter("balog query"), is_slow=True) as display,
        spark_place.session("balog query", settings, explain) as spark,
    ):
        display("Running the query")
        frame = ask(spark, open_tables(spark, location) if location is not None else None, asked.text, sources)
        with display.watching(spark):
            if form == "parquet" and output is not None:
                return write_parquet(frame, output, limit), False
            stdout = display.stopping(sys.stdout) if output is None else None
            return _to_output(lambda out: write_text(frame, form, out, limit), output, stdout)


def _to_output(write: Callable[[IO[str]], Written], path: Path | None, stdout: IO[str] | None = None) -> Written:
    """Write to a file, atomically, or to stdout."""
    if path is None:
        written = write(stdout or sys.stdout)
        sys.stdout.flush()
        return written
    try:
        with replacing(path) as file:
            out = io.TextIOWrapper(file, encoding="utf-8", newline="")
            written = write(out)
            out.detach()  # flushes, and leaves the file open
    except OSError as error:
        raise _unwritable(path, error) from None
    return written


def _unwritable(path: Path, error: OSError) -> ConfigError:
    return ConfigError(f"cannot be written: {error.strerror}; give another --output", str(path))
