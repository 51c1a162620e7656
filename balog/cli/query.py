"""``balog query``: run SQL on the tables of ``balog load``, and on raw events."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

import click

from balog.cli.shared import options
from balog.cli.shared.output import reporter
from balog.cli.shared.spark import ENGINES, SparkPlace, check_tables, spark_options, spark_packages
from balog.common.errors import ConfigError, MissingExtraError
from balog.common.storage.local_files import replacing
from balog.common.text import counted

if TYPE_CHECKING:
    from pyspark.errors import PySparkException

    from balog.analytics.embedded.database import QueryAnswer

    Written = tuple[int, bool]

_FORMATS = ("table", "csv", "jsonl", "parquet")


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
    help='Raw events that SQL may read as balog."PATH": a file, folder, glob, URL or topic, and all in the folder.',
)
@click.option("--format", "form", type=click.Choice(_FORMATS), default="table", show_default=True)
@click.option(
    "--output", type=options.FilePath(dir_okay=False, path_type=Path), help="Write to this file, not to stdout."
)
@options.integer("--limit", least=0, help="Write at most this many rows; a table shows 200 by default.")
@click.option(
    "--engine",
    type=click.Choice(ENGINES),
    default="auto",
    show_default=True,
    help="auto: Spark for hive:, delta:, --master and --remote, DuckDB in this process for all others.",
)
@spark_options
def command(
    sql: str, location: str | None, sources: tuple[str, ...], form: str, output: Path | None, limit: int | None,
    engine: str, spark_place: SparkPlace,
) -> None:  # fmt: skip
    """Run SQL on the tables of PLACE, and on raw events: DuckDB's SQL, or Spark's with --engine spark.

    SQL is one SELECT (or WITH …), SHOW TABLES or DESCRIBE; - reads it from stdin. It can only read the tables and the
    sources: statements that write, change settings, open other paths or run programs are rejected.

    \b
    balog query "SELECT cls_type, count(*) FROM events GROUP BY ALL" --tables tables
    balog query "SHOW TABLES" --tables tables
    balog query - --tables tables --format csv < question.sql
    balog query 'SELECT level, count(*) FROM balog."dumps" GROUP BY ALL' --source dumps
    """
    began = time.monotonic()
    is_spark = spark_place.answers(engine, location or "")
    if find_spec("pyspark" if is_spark else "duckdb") is None:
        raise MissingExtraError("balog query", "spark" if is_spark else "embedded")
    from balog.analytics.reading.inputs import EMPTY

    try:
        text = sys.stdin.read() if sql == "-" else sql
        text.encode()
    except UnicodeError:
        raise ConfigError("not UTF-8", "SQL") from None
    if is_spark:  # a statement that is not allowed fails before anything starts
        from balog.analytics.querying.spark_allowed_statements import check

        check(text, sources=sources)
    _check_output(form, output, is_spark=is_spark)
    if not all(map(str.strip, sources)):
        raise ConfigError(EMPTY, "--source")
    if location is None and not sources:
        raise ConfigError("nothing to ask; give --tables PLACE or --source PATH", "the command line")
    if location is not None:
        check_tables(location)
    asked = _Asked(text, location, sources, form, output, limit)
    rows, more = _answer_on_spark(asked, spark_place) if is_spark else _answer_embedded(asked)
    rest = "; there are more, give a larger --limit" if more else ""
    click.echo(
        f"balog query: {counted(rows, 'row', shown=f'{rows:,}')} in {time.monotonic() - began:.1f} s, by "
        f"{'Spark' if is_spark else 'DuckDB'}{rest}",
        err=True,
    )


class _Asked(NamedTuple):
    """What the command line asks for: a statement, what it may read, and where the answer goes."""

    text: str
    location: str | None
    sources: tuple[str, ...]
    form: str
    output: Path | None
    limit: int | None


def _check_output(form: str, output: Path | None, *, is_spark: bool) -> None:
    if form == "parquet" and output is None:
        raise ConfigError("a Parquet file is binary; give --output FILE", "--format parquet")
    if form == "parquet" and is_spark:
        raise ConfigError("DuckDB writes it, and this is for Spark; take another format", "--format parquet")
    if output is not None and not output.absolute().parent.is_dir():
        raise ConfigError("its folder does not exist; make it, or give another --output", str(output))


def _answer_embedded(asked: _Asked) -> Written:
    from balog.analytics.embedded.database import ask
    from balog.analytics.embedded.raw_tables import QueryTables, raw_paths
    from balog.analytics.progress import progress
    from balog.analytics.querying.sources import open_source
    from balog.analytics.tables.local import StoredTables

    stored = StoredTables(asked.location) if asked.location is not None else None
    raw = [open_source(path, asked.sources) for path in raw_paths(asked.text)]
    with QueryTables(stored, {source.name: source.options for source in raw}, asked.text) as tables:
        if raw:
            with progress("Reading files", reporter("balog query")):
                tables.read()
        with ask(tables, asked.text) as answer:
            return _write_answer(asked, answer)


def _write_answer(asked: _Asked, answer: QueryAnswer) -> Written:
    from balog.analytics.querying.rows import shown_rows, write_rows

    form, output = asked.form, asked.output
    limit = shown_rows(form, asked.limit)
    if form == "parquet" and output is not None:
        try:
            with replacing(output) as file:
                return answer.write_parquet(file, limit)
        except OSError as error:
            raise _unwritable(output, error) from None
    return _to_output(lambda out: write_rows(answer.names, answer.rows(limit), form, out, limit), output)


def _answer_on_spark(asked: _Asked, spark_place: SparkPlace) -> Written:
    with spark_packages("balog query"):
        from balog.analytics.progress import progress
        from balog.analytics.querying.spark_statement import ask, explain_failure, write_text
        from balog.analytics.tables import open_tables
        from balog.analytics.tables.catalogs.location import session_settings

    _, location, sources, form, output, limit = asked

    def explain(error: PySparkException) -> str:
        return f"SQL: {explain_failure(error)}"

    settings = session_settings(location or "")
    with (
        progress(spark_place.waiting, reporter("balog query"), is_slow=True) as display,
        spark_place.session("balog query", settings, explain) as spark,
    ):
        display("Running the query")
        frame = ask(spark, open_tables(spark, location) if location is not None else None, asked.text, sources)
        with display.watching(spark):
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
