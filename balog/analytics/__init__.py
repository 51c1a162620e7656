"""Ask the whole history: the Spark data source ``balog``, its rollup, and the report that people read.

Importing this costs nothing; Spark and its company are imported by the functions that need them. The questions of
``balog.analytics.functions`` are here, too: ``balog.analytics.failures(frame)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from balog.errors import MissingExtraError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register", "session"]

_FUNCTIONS = frozenset(
    ("between", "channels", "failures", "health", "http", "metrics", "quarantine", "runs", "streams", "throughput",
     "waiting")
)  # fmt: skip


def __getattr__(name: str) -> Any:
    """Give what ``balog.analytics.functions`` has, which needs Spark."""
    if name not in _FUNCTIONS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    _need_spark()
    from balog.analytics import functions

    return getattr(functions, name)


def register(spark: SparkSession) -> None:
    """Make ``spark.read.format("balog").load(path)`` known to this session; again is harmless.

    ``path`` is a file, a folder (read with everything below it), a glob, or a list of those. The columns are ``id``,
    ``channel``, ``timestamp``, ``level``, ``schema``, ``composition``, ``context map<string,string>``, ``cls_type``,
    ``payload variant`` and ``quarantine struct<file, offset, reason, raw>``. The schema given to the reader is the
    projection; see ``balog.analytics.reading.projection``.

    Raises:
        MissingExtraError: pyspark or its company is not installed.
    """
    _need_spark()
    from balog.analytics.source import EventSource

    spark.dataSource.register(EventSource)


def session(application: str = "balog", *, master: str = "", remote: str = "", **settings: Any) -> SparkSession:
    """Give a quiet Spark session with the data source ``balog`` registered, or the one that is already active.

    Args:
        application: the name that Spark shows.
        master: where to work, ``local[*]`` by default; see ``balog.analytics.sessions.start``.
        remote: a Spark Connect server, ``sc://HOST:PORT``, in place of a master.
        settings: Spark settings, with ``_`` for ``.`` where there is none: ``spark_driver_memory="4g"``.

    Raises:
        MissingExtraError: pyspark or its company is not installed.
        ConfigError: no such master or remote.
        BalogError: no Java 17 or newer was found, or no session can be had there.
    """
    _need_spark()
    from balog.analytics.sessions import start

    named = {name if "." in name else name.replace("_", "."): str(value) for name, value in settings.items()}
    spark = start(application, named, master, remote)
    register(spark)
    return spark


def _need_spark() -> None:
    try:
        import duckdb  # noqa: F401
        import pyarrow  # noqa: F401
        import pyspark  # noqa: F401
    except ImportError:
        raise MissingExtraError("asking events with Spark", "spark") from None
