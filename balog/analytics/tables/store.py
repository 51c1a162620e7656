"""What a store of tables commits, batches of staged Parquet files, and the names and errors of tables."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import TYPE_CHECKING, NamedTuple

from balog.common.errors import BalogError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


ROLLUPS = {name: f"rollup_{name}" for name in ("events", "metrics", "errors", "runs", "quarantine")}
"""The table of each frame of ``balog.analytics.rollups.Rollups``."""


class TableError(BalogError):
    """Tables could not be read or written.

    Args:
        reason: what is wrong and what to do.
        location: the tables' location, or one of their files.
    """

    def __init__(self, reason: str, location: str) -> None:
        super().__init__(f"{location}: {reason}")
        self.reason = reason
        self.location = location


class RowError(TableError):
    """An event can't be converted to a row of its type's table, or a row differs from its payload.

    Args:
        table: the type's table.
        field: the path of the payload's field.
        event: the event's id.
        reason: what is wrong.
    """

    def __init__(self, table: str, field: str, event: str, reason: str) -> None:
        self.table, self.field, self.event, self.cause = table, field, event, reason
        where = f"table {table}, field {field:.200}, event {event:.140}"
        super().__init__(f"{reason}; what was committed before is there, this batch is not", where)


class LoadedSource(NamedTuple):
    """A loaded source: its size in bytes, and its modification time in seconds since 1970."""

    size: int
    changed: float


class StagedFile(NamedTuple):
    """A Parquet file of one table and day.

    ``first`` and ``last`` are its earliest and latest timestamps, with a zone, if known.
    """

    path: str
    day: date
    rows: int
    size: int
    first: datetime | None = None
    last: datetime | None = None


class TablePart(NamedTuple):
    """A batch's part of one table: the table's new columns, without ``date``, and the rows as staged files."""

    schema: StructType
    files: Sequence[StagedFile] = ()

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(file.rows for file in self.files)

    def frame(self, spark: SparkSession) -> DataFrame:
        """Return the rows in the columns of ``schema``, and ``date date``."""
        from pyspark.sql import functions as f
        from pyspark.sql import types as t

        whole = t.StructType([*self.schema.fields, t.StructField("date", t.DateType())])
        if not self.files:
            return spark.createDataFrame([], whole)
        days = f.to_date(f.regexp_extract(f.col("_metadata.file_path"), r"/date=([0-9-]{10})/", 1))
        frame = read_files(spark, self.schema, [file.path for file in self.files])
        return frame.select(*(f.col(f"`{name}`") for name in self.schema.names), days.alias("date"))


@dataclass(frozen=True)
class TableBatch:
    """Everything that one commit adds.

    Attributes:
        id: the same for another try of the same batch, and only then; letters, digits and ``-``.
        parts: by table. A missing table is created, and new columns are added. A part without files only changes
            columns.
        sources: the sources of the batch, by path; the next load skips those that have not changed.
        stream: the name of a stream, and the number of its batch; a number that is not after the last one commits
            nothing.
    """

    id: str
    parts: Mapping[str, TablePart]
    sources: Mapping[str, LoadedSource] = field(default_factory=dict)
    stream: tuple[str, int] | None = None


class LoadHistory(NamedTuple):
    """A store's history of batches: see ``TableBatch``.

    ``commits`` counts successful commits, so that a later batch of the same sources gets another id.
    """

    sources: Mapping[str, LoadedSource]
    streams: Mapping[str, int]
    floor: date | None = None
    commits: int = 0


def read_files(spark: SparkSession, schema: StructType, paths: Iterable[str], base: str = "") -> DataFrame:
    """Read Parquet files, escaping glob characters in their names; ``base`` is their table's folder."""
    reader = spark.read.schema(schema).options(**{"basePath": base} if base else {})
    return reader.parquet(*(re.sub(r"[][{}*?\\]", r"\\\g<0>", path) for path in paths))


_OWN = {"events", "quarantine"}
_PLAIN = re.compile(r"[a-z][a-z0-9_]{0,99}")
_WITH_DIGEST = re.compile(r".*_[0-9a-f]{12}")


def table_name(cls_type: str) -> str:
    """Return the name of a payload type's table; it is unique for each type.

    It is the type's own name if that is lower-case ASCII and free. A changed name gets a digest.

    >>> table_name("metric"), table_name("My-Type.v2"), table_name("events"), table_name("日志")
    ('metric', 'my_type_v2_3c8634e81780', 'type_events_862417b9e7c3', 'type_7dbac1c20f23')
    """
    if _PLAIN.fullmatch(cls_type) and not is_own(cls_type) and not _WITH_DIGEST.fullmatch(cls_type):
        return cls_type
    name = re.sub(r"[^a-z0-9]+", "_", cls_type.lower()).strip("_")[:80]
    if not name or name[0].isdigit() or is_own(name):
        name = f"type_{name}" if name else "type"
    return f"{name}_{hashlib.sha256(cls_type.encode(errors='surrogatepass')).hexdigest()[:12]}"


def is_own(table: str) -> bool:
    """Return whether a table is not of a payload type: ``events``, ``quarantine`` and the rollups."""
    return table in _OWN or table.startswith("rollup_")
