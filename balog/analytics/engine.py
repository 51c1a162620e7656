"""The engines that answer questions: Spark, and DuckDB on one machine.

A question is written once, as SQL in Spark's dialect (``balog.analytics.questions``). Its tables are names in braces,
``FROM {events}``, which each call replaces by frames, and its values are parameters, ``:since``. No value is ever part
of the text. Times are passed as microseconds since 1970 (``timestamp_micros(:since)``), which every engine reads alike.

Two functions are each engine's own: ``kll_merge_agg_double(sketch, k)`` and
``kll_sketch_get_quantile_double(sketch, share)``. They exist in Spark; another engine brings them under these names.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    import pyarrow as pa

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)

Parameters: TypeAlias = "Mapping[str, str | int | float | bool | None]"
Row: TypeAlias = "dict[str, Any]"
Frames = TypeVar("Frames", bound="tuple[Any, ...]")


class QueryResult(Protocol):
    """The answer to a question; nothing may have been computed yet."""

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in order."""

    @property
    def types(self) -> list[str]:
        """The types of the columns as Spark names them: ``bigint``, ``array<string>``, ``struct<id:string>``."""

    @property
    def frame(self) -> Any:
        """The answer as a frame of the engine: what a notebook gets, and what further questions may read."""

    def rows(self) -> list[Row]:
        """Compute the answer.

        Returns:
            A dictionary for each row. Structs are dictionaries, too, and times are in UTC.
        """


class QueryEngine(Protocol):
    """Runs questions. Every engine returns the same columns, types, order and numbers.

    Percentiles from sketches agree within ``balog.analytics.sketches.RANK_ERROR``. Sums of doubles agree except for
    their last digits, which depend on the order of the rows.
    """

    def sql(self, text: str, parameters: Parameters | None = None, **frames: Any) -> QueryResult:
        """Return the answer to a question.

        Args:
            text: a SELECT in Spark's dialect.
            parameters: the values of ``:name`` in the text.
            frames: frames of this engine, by their names in braces.
        """

    def tuned(self, rollups: Frames, rows: int) -> AbstractContextManager[Frames]:
        """Return a context for several questions about the same frames, and the frames to ask about.

        Args:
            rollups: a named tuple of frames.
            rows: about how many they have.
        """


def micros(moment: datetime | None) -> int | None:
    """Return a time as microseconds since 1970, the form in which questions take it."""
    return None if moment is None else (moment - EPOCH) // timedelta(microseconds=1)


def rows_of(table: pa.Table) -> list[Row]:
    """Return the rows of an Arrow table; structs are dictionaries, and times are in UTC."""
    import pyarrow as pa

    # pyarrow would look for a package with time zones, if only for UTC
    schema = pa.schema([pa.field(field.name, _without_zone(field.type)) for field in table.schema])
    rows: list[Row] = _in_utc(table.cast(schema).to_pylist())
    return rows


def _without_zone(kind: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    if pa.types.is_timestamp(kind):
        return pa.timestamp(kind.unit)
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _without_zone(field.type)) for field in kind])
    return pa.list_(_without_zone(kind.value_type)) if pa.types.is_list(kind) else kind


def _in_utc(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.replace(tzinfo=timezone.utc)
    if isinstance(value, dict):
        return {name: _in_utc(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_in_utc(inner) for inner in value]
    return value
