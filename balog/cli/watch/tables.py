"""The events of tables for monitors: by the embedded engine, or by Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from importlib.util import find_spec

import click

from balog.cli.shared.spark import SparkPlace, check_tables, spark_packages
from balog.common.errors import ConfigError, MissingExtraError
from balog.watch.history.backtest import EventSelection

ENGINES = ("auto", "duckdb", "spark")

LARGEST = 5_000_000_000
"""``--engine auto`` uses DuckDB for tables of up to this many bytes, compressed as they are stored."""


@contextmanager
def stored_rows(
    location: str, selection: EventSelection, since: datetime, until: datetime, engine: str, spark_place: SparkPlace
) -> Iterator[Iterator[str]]:
    """Open the events of tables from ``since`` to before ``until``, in the order of their times, for ``event_of``.

    Args:
        selection: which events.
        engine: ``auto`` is DuckDB for tables of up to ``LARGEST`` bytes in a folder, otherwise Spark.

    Raises:
        ConfigError: there are no tables at the location, or the engine cannot read them.
        MissingExtraError: the engine's packages are not installed.
        BalogError: the engine failed.
    """
    if engine != "spark" and find_spec("duckdb") is None and (engine == "duckdb" or find_spec("pyspark") is None):
        raise MissingExtraError("balog watch --tables", "embedded")
    from balog.analytics.querying.stored_events import events_query
    from balog.analytics.tables.catalogs.location import CATALOGS

    check_tables(location)
    query = events_query(selection.types, since, until, errors=selection.errors)
    elsewhere = spark_place.master or spark_place.remote or location.startswith(CATALOGS)
    if engine == "duckdb" and elsewhere:
        raise ConfigError("duckdb reads tables in a folder on this machine; give --engine spark", "--engine")
    if engine != "spark" and not elsewhere and find_spec("duckdb") is not None:
        from balog.analytics.embedded.database import ask
        from balog.analytics.tables.local import StoredTables

        tables = StoredTables(location)
        if engine == "duckdb" or tables.size("events") <= LARGEST:
            with ask(tables, query.replace("unix_micros(", "epoch_us(")) as answer:
                yield answer.rows()
            return
        click.echo(f"balog watch: Spark reads tables of more than {LARGEST / 10**9:g} GB", err=True)
    with _spark_rows(location, query, spark_place) as rows:
        yield rows


@contextmanager
def _spark_rows(location: str, query: str, spark_place: SparkPlace) -> Iterator[Iterator[str]]:
    with spark_packages("balog watch --engine spark"):
        from balog.analytics.progress import progress
        from balog.analytics.querying.spark_statement import ask, documents
        from balog.analytics.tables import open_tables
        from balog.analytics.tables.catalogs.location import session_settings

    with (
        progress(spark_place.waiting) as display,
        spark_place.session("balog watch", session_settings(location)) as spark,
    ):
        display("Reading events")
        yield documents(ask(spark, open_tables(spark, location), query), None)
