"""``balog query``: run SQL on the tables of ``balog load``."""

from __future__ import annotations

import io
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from balog.cli import options
from balog.cli.spark import SparkPlace, spark_options, spark_packages
from balog.errors import ConfigError
from balog.storage.local_files import replacing

if TYPE_CHECKING:
    from pyspark.errors import PySparkException
    from pyspark.sql import DataFrame

_FORMATS = ("table", "csv", "json", "jsonl", "parquet")


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
@spark_options
def command(
    sql: str, location: str, form: str, output: Path | None, limit: int | None, spark_place: SparkPlace
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
    with spark_packages("balog query"):
        from balog.analytics.progress import progress
        from balog.analytics.querying.output import write_parquet, write_text
        from balog.analytics.querying.statement import ask, check, explain_failure
        from balog.analytics.tables import is_tables, open_tables
        from balog.analytics.tables.location import session_settings
    text = sys.stdin.read() if sql == "-" else sql
    check(text)  # a statement that is not allowed fails before Spark starts
    if form == "parquet" and output is None:
        raise ConfigError("a Parquet file is binary; give --output FILE", "--format parquet")
    if form == "parquet" and (spark_place.remote or not (spark_place.master or "local").startswith("local")):
        raise ConfigError("Spark would write it on the cluster's machines; take another format", "--format parquet")
    if output is not None and not output.absolute().parent.is_dir():
        raise ConfigError("its folder does not exist; make it, or give another --output", str(output))
    if not is_tables(location):
        raise ConfigError("there are no tables; make some: balog load SOURCE --tables PLACE", location)

    def explain(error: PySparkException) -> str:
        return f"SQL: {explain_failure(error, text)}"

    settings = session_settings(location)
    with progress("Starting Spark") as display, spark_place.session("balog query", settings, explain) as spark:
        display("Running the query")
        frame = ask(spark, open_tables(spark, location), text)
        with display.watching(spark):
            if output is None:
                rows, more = write_text(frame, form, display.stopping(sys.stdout), limit)
                sys.stdout.flush()
            elif form == "parquet":
                rows, more = write_parquet(frame, output, limit), False
            else:
                rows, more = _to_file(frame, form, output, limit)
    rest = "; there are more, give a larger --limit" if more else ""
    click.echo(
        f"balog query: {rows:,} {'row' if rows == 1 else 'rows'} in {time.monotonic() - began:.1f} s{rest}", err=True
    )


def _to_file(frame: DataFrame, form: str, path: Path, limit: int | None) -> tuple[int, bool]:
    from balog.analytics.querying.output import write_text

    try:
        with replacing(path) as file:
            out = io.TextIOWrapper(file, encoding="utf-8", newline="")
            written = write_text(frame, form, out, limit)
            out.detach()  # flushes, and leaves the file open
    except OSError as error:
        raise ConfigError(f"cannot be written: {error.strerror}; give another --output", str(path)) from None
    return written
