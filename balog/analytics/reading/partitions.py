"""What Spark carries to its workers of a plan: the slices that each task reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.sql.datasource import InputPartition

from balog.analytics.reading.files import Slice

__all__ = ["partitions", "slices"]


def partitions(tasks: Iterable[Sequence[Slice]]) -> list[InputPartition]:
    """Give a partition for each task; none at all gives one of nothing, which Spark wants."""
    return [InputPartition([tuple(piece) for piece in task]) for task in tasks] or [InputPartition([])]


def slices(partition: InputPartition) -> list[Slice]:
    """Give back what a partition was made of."""
    return [Slice(*piece) for piece in partition.value]
