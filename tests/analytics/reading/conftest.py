"""Reading without Spark: the batches that a worker would hand over."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

Row = dict[str, Any]


def read_rows(
    path: Path | str, start: int = 0, end: int | None = None, growth: bool = False, form: str = "auto"
) -> list[Row]:
    """Read a slice as rows, the payload as JSON text."""
    from pyspark.sql import types as t

    from balog.analytics.reading.scan import EventQuery, scan
    from balog.analytics.reading.spark_types import DEFAULT, project_spark
    from balog.analytics.reading.tasks import Slice

    schema = t.StructType([*(f for f in DEFAULT if f.name != "payload"), t.StructField("payload", t.StringType())])
    query = EventQuery(project_spark(schema))
    batches = scan([Slice(str(path), start, end)], query, form=form, is_growth=growth)
    return [row for batch in batches for row in batch.to_pylist()]


def read_tasks(tasks: Iterable[Sequence[Any]], storages: Any = None) -> tuple[Counter[str], list[Row]]:
    """Read the slices of tasks; return how often each id came, and the rows of quarantine."""
    from pyspark.sql.types import StructType

    from balog.analytics.reading.scan import EventQuery, scan
    from balog.analytics.reading.spark_types import DEFAULT, project_spark

    query = EventQuery(project_spark(StructType([DEFAULT["id"], DEFAULT["quarantine"]])))
    rows = [row for slices in tasks for batch in scan(slices, query, storages) for row in batch.to_pylist()]
    bad = [row["quarantine"] for row in rows if row["quarantine"]]
    return Counter(row["id"] for row in rows if not row["quarantine"]), bad


@pytest.fixture(name="read_rows")
def _read_rows() -> Any:
    """``read_rows``, for tests of every form."""
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    pytest.importorskip("duckdb", reason="duckdb is not installed")
    return read_rows
