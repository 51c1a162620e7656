"""Spark as an engine for questions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Lock

from pyspark.sql import DataFrame, SparkSession

from balog.analytics.engine import Frames, Parameters, Row, rows_of

_FEW = 50_000  # rows of a rollup
_SMALL = {
    # Spark compiles each query to Java classes; for few rows, interpreting it is faster
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}
_BINDING = Lock()  # questions are asked by several threads, and settings are the session's
_BOUND_LATE = {"spark.sql.legacy.parameterSubstitution.constantsOnly": "true"}


class SparkEngine:
    """Answers questions in a Spark session."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        # In Spark 4.1 and later, a parser of an extension (Delta's) loses parameters, unless they are bound after it:
        # https://github.com/delta-io/delta/issues/7640
        self._binding = _BOUND_LATE if spark.conf.get("spark.sql.extensions", "") else {}

    def sql(self, text: str, parameters: Parameters | None = None, **frames: DataFrame) -> SparkResult:
        """Return the answer to a question; Spark computes it when its rows are read."""
        if not parameters or not self._binding:
            return SparkResult(self.spark.sql(text, dict(parameters or {}), **frames))
        with _BINDING, spark_settings(self.spark, self._binding):
            return SparkResult(self.spark.sql(text, dict(parameters or {}), **frames))

    @contextmanager
    def tuned(self, rollups: Frames, rows: int) -> Iterator[Frames]:
        """Return frames for several questions: for few rows, one task without a shuffle is faster than several."""
        if rows > _FEW:
            yield rollups
            return
        with spark_settings(self.spark, _SMALL):
            yield type(rollups)(*(frame.coalesce(1) for frame in rollups))


class SparkResult:
    """A DataFrame as an answer."""

    def __init__(self, frame: DataFrame) -> None:
        self.frame = frame

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self.frame.columns

    @property
    def types(self) -> list[str]:
        """The types of the columns."""
        return [kind for _, kind in self.frame.dtypes]

    def rows(self) -> list[Row]:
        """Compute the answer."""
        return rows_of(self.frame.toArrow())


@contextmanager
def spark_settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Change settings of a session in the block."""
    before: dict[str, str | None] = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)
