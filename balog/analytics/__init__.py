"""Analytics over the whole history: the Spark data source ``balog``, rollups, tables, and the report.

Importing this module is cheap: functions import Spark when they need it. The functions of ``balog.analytics.functions``
are also available here: ``balog.analytics.failures(frame)``, and so is ``report`` of
``balog.analytics.reporting.notebook``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from balog.common.errors import MissingExtraError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register", "session"]

_FUNCTIONS = frozenset(("between", "channels", "failures", "metrics", "quarantine", "runs", "streams"))


def __getattr__(name: str) -> Any:
    """Return a function of ``balog.analytics.functions``, or ``report``."""
    if name == "report":
        try:
            from balog.analytics.reporting.notebook import report
        except ImportError:
            raise MissingExtraError("reporting events", "spark") from None
        return report
    if name not in _FUNCTIONS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from balog.analytics import functions
    except ImportError:
        raise MissingExtraError("asking events", "embedded") from None

    return getattr(functions, name)


def register(spark: SparkSession) -> None:
    """Register ``spark.read.format("balog").load(path)`` with a session; repeated calls have no effect.

    ``path`` is a file, a folder (recursive), a glob, or a list of those. The columns are ``id``, ``channel``,
    ``timestamp``, ``level``, ``schema``, ``composition``, ``context map<string,string>``, ``cls_type``,
    ``payload variant`` and ``quarantine struct<file, offset, reason, raw>``. The schema of the reader is the
    projection; see ``balog.analytics.reading.projection``.

    Raises:
        MissingExtraError: pyspark or a package that it needs is not installed.
    """
    _need_spark()
    from balog.analytics.source import EventSource

    spark.dataSource.register(EventSource)


def session(application: str = "balog", *, master: str = "", remote: str = "", **settings: Any) -> SparkSession:
    """Return a quiet Spark session with the data source ``balog``; an active session is reused.

    Args:
        application: the name that Spark shows.
        master: where to run, ``local[*]`` by default; see ``balog.analytics.sessions.start``.
        remote: a Spark Connect server, ``sc://HOST:PORT``, instead of a master.
        settings: Spark settings; ``_`` stands for ``.`` in names without one: ``spark_driver_memory="4g"``.

    Raises:
        MissingExtraError: pyspark or a package that it needs is not installed.
        ConfigError: the master or remote is not valid.
        BalogError: Java 17 or newer is missing, or no session could be started.
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
