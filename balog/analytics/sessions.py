"""Start a local Spark session that says nothing and leaves nothing behind."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from balog.analytics.java import find_java, wrap

__all__ = ["start"]

_LOG4J = """rootLogger.level = error
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = spark: %p %c{1}: %m%n
"""


def start(application: str, settings: dict[str, Any]) -> SparkSession:
    """Give the active session, or start one on all cores of this machine; it is stopped when the process ends.

    Raises:
        BalogError: no Java 17 or newer was found.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    folder = Path(tempfile.mkdtemp(prefix="balog-spark-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "log4j2.properties").write_text(_LOG4J)
    home = wrap(find_java(), folder / "java")
    cores = os.cpu_count() or 1
    defaults = {
        "spark.master": "local[*]",
        "spark.app.name": application,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile=file:{folder / 'log4j2.properties'}",
        "spark.local.dir": str(folder / "scratch"),
        "spark.pyspark.python": sys.executable,
        "spark.pyspark.driver.python": sys.executable,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder
    for name, value in (defaults | settings).items():
        builder = builder.config(name, value)
    with _environment(JAVA_HOME=str(home), SPARK_LOCAL_IP="127.0.0.1", PYSPARK_PYTHON=sys.executable):
        return builder.getOrCreate()


@contextmanager
def _environment(**values: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
