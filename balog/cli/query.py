"""``balog query``: run SQL on the tables of ``balog load``."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from balog.cli import options
from balog.cli.spark import SparkPlace, spark_options, spark_packages
from balog.errors import ConfigError, MissingExtraError
from balog.storage.local_files import replacing

if TYPE_CHECKING:
    from pyspark.errors import PySparkException

    from balog.analytics.embedded.statement import Question

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
    required=True,
    metavar="PLACE",
    help="The tables' location: a folder, or hive:…, iceberg:…, delta:….",
)
@click.option("--format", "form", type=click.Choice(_FORMATS), default="table", show_default=True)
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file instead of stdout.")
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
    sql: str, location: str, form: str, output: Path | None, limit: int | None, engine: str, spark_place: SparkPlace
) -> None:
    """Run SQL on the tables of PLACE, in Spark's dialect.

    SQL is one SELECT (or WITH …), SHOW TABLES, SHOW COLUMNS IN, DESCRIBE or EXPLAIN; - reads it from stdin. It can only
    read the tables: statements that write, change settings, open paths or run programs are rejected.

    \b
    balog query "SELECT cls_type, count(*) FROM events GROUP BY ALL" --tables tables
    balog query "SHOW TABLES" --tables tables
    balog query - --tables tables --format csv < question.sql
    """
    began = time.monotonic()
    _need_packages(engine)
    from balog.analytics.querying.policy import check
    from balog.analytics.tables import is_tables

    text = sys.stdin.read() if sql == "-" else sql
    check(text)  # a statement that is not allowed fails before anything starts
    _check_output(form, output, spark_place)
    if not is_tables(location):
        raise ConfigError("there are no tables; make some: balog load SOURCE --tables PLACE", location)
    question = _embedded_question(engine, location, spark_place, text)
    written = None if question is None else _answer_embedded(question, engine, form, output, limit)
    rows, more = written or _answer_on_spark(location, spark_place, text, form, output, limit)
    rest = "; there are more, give a larger --limit" if more else ""
    click.echo(
        f"balog query: {rows:,} {'row' if rows == 1 else 'rows'} in {time.monotonic() - began:.1f} s{rest}", err=True
    )


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


def _embedded_question(engine: str, location: str, spark_place: SparkPlace, text: str) -> Question | None:
    """Return the question for the embedded engine, or None if Spark answers it.

    Raises:
        ConfigError: the statement is wrong, or ``--engine duckdb`` can't answer it.
    """
    from balog.analytics.tables.location import CATALOGS

    elsewhere = "--master" if spark_place.master else "--remote" if spark_place.remote else ""
    if location.startswith(CATALOGS):
        elsewhere = location.partition(":")[0]
    if engine == "duckdb" and elsewhere:
        raise ConfigError(f"{elsewhere} needs Spark; leave out --engine duckdb, or give --engine spark", "--engine")
    if engine == "spark" or elsewhere or find_spec("duckdb") is None:
        return None
    from balog.analytics.embedded.statement import ask
    from balog.analytics.embedded.stored_tables import StoredTables
    from balog.analytics.embedded.values import SparkNeeded
    from balog.analytics.querying.policy import check

    tables = StoredTables(location)
    checked = check(text, tables.names())
    try:
        question = ask(tables, checked)
    except SparkNeeded as needed:
        _leave_to_spark(engine, needed)
        return None
    return question if engine == "duckdb" or question.size <= LARGEST else None


def _leave_to_spark(engine: str, needed: ConfigError) -> None:
    """Note that Spark answers a statement.

    Raises:
        ConfigError: Spark is not to be used, or is not installed.
    """
    if engine == "duckdb" or not _has_spark():
        raise needed
    click.echo(f"balog query: {str(needed).partition(';')[0]}: answered by Spark", err=True)


def _answer_embedded(
    question: Question, engine: str, form: str, output: Path | None, limit: int | None
) -> Written | None:
    """Write the answer of the embedded engine; None if a value needs Spark."""
    from balog.analytics.embedded.values import SparkNeeded
    from balog.analytics.querying.rows import need_unique, shown_rows, write_rows

    if form in ("json", "jsonl", "parquet"):
        need_unique(question.names)
    limit = shown_rows(form, limit)
    try:
        if form == "parquet" and output is not None:
            with replacing(output) as file:
                return question.write_parquet(file, limit), False
        with question.rows(limit) as rows:
            return _to_output(lambda out: write_rows(question.names, rows, form, out, limit), output)
    except SparkNeeded as needed:
        _leave_to_spark(engine, needed)
        return None
    except OSError as error:
        if output is None:
            raise
        raise _unwritable(output, error) from None


def _answer_on_spark(
    location: str, spark_place: SparkPlace, text: str, form: str, output: Path | None, limit: int | None
) -> Written:
    with spark_packages("balog query"):
        from balog.analytics.progress import progress
        from balog.analytics.querying.output import write_parquet, write_text
        from balog.analytics.querying.statement import ask, explain_failure
        from balog.analytics.tables import open_tables
        from balog.analytics.tables.location import session_settings

    def explain(error: PySparkException) -> str:
        return f"SQL: {explain_failure(error, text)}"

    settings = session_settings(location)
    with progress("Starting Spark") as display, spark_place.session("balog query", settings, explain) as spark:
        display("Running the query")
        frame = ask(spark, open_tables(spark, location), text)
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
