"""Queries of monitors on the tables of ``balog load``, by the embedded engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import msgspec

from balog.errors import BalogError, ConfigError, MissingExtraError

MAX_ROWS = 10_000
"""Rows of a query that are read."""

SECONDS = 300.0
"""Seconds that a query may take."""


def open_queries(location: str) -> Callable[[str], Sequence[Mapping[str, Any]]]:
    """Return a function that runs one SELECT, in DuckDB's SQL, on the tables at a folder, and returns its rows.

    Raises:
        ConfigError: there are no tables.
        MissingExtraError: the extra ``embedded`` is not installed.
    """
    if find_spec("duckdb") is None:
        raise MissingExtraError("a monitor with sql", "embedded")
    from balog.analytics.embedded.statement import ask
    from balog.analytics.embedded.stored_tables import StoredTables
    from balog.analytics.tables import check_location, is_tables

    check_location(location)
    if not is_tables(location):
        raise ConfigError("there are no tables; make some: balog load SOURCE --tables PLACE", location)

    def run(sql: str) -> list[dict[str, Any]]:
        with ask(StoredTables(location), sql, SECONDS) as answer:
            found = [msgspec.json.decode(row) for row in answer.rows(MAX_ROWS)]
        if len(found) > MAX_ROWS:
            raise BalogError(f"it returns more than {MAX_ROWS:,} rows; group them")
        return [dict(zip(answer.names, row.values())) for row in found]

    return run
