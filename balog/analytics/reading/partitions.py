"""Partitions of Spark: the slices that each task reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.sql.datasource import InputPartition

from balog.analytics.reading.files import Slice


def partitions(tasks: Iterable[Sequence[Slice]]) -> list[InputPartition]:
    """Return a partition for each task, or an empty one if there is no task, because Spark needs one."""
    return [InputPartition([tuple(piece) for piece in task]) for task in tasks] or [InputPartition([])]


def slices(partition: InputPartition) -> list[Slice]:
    """Return the slices of a partition."""
    return [Slice(*piece) for piece in partition.value]
