"""A Spark Connect server on loopback, started from the jars of the pyspark package."""

import os
import sys
from pathlib import Path

import pytest

from tests.services.servers.process import FolderServer, accepts


class SparkConnectServer(FolderServer):
    """A server with two cores of this machine, whose Python workers have balog.

    Args:
        folder: for its log, its scratch files and its warehouse.
    """

    @property
    def url(self) -> str:
        return f"sc://127.0.0.1:{self.port}"

    def up(self) -> None:
        pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed")
        from balog.analytics.sessions import find_java

        settings = {
            "spark.master": "local[2]",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(self.port),
            "spark.ui.enabled": "false",
            "spark.local.dir": str(self.folder / "scratch"),
            "spark.sql.warehouse.dir": str(self.folder / "warehouse"),
            "spark.sql.shuffle.partitions": "2",
        }
        submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
        command = [str(submit), "--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
        command += ["--driver-memory", "1g", *(f"--conf={name}={value}" for name, value in settings.items())]
        own = {
            "JAVA_HOME": str(find_java().resolve().parents[1]),
            "SPARK_HOME": str(submit.parents[1]),
            "PYSPARK_PYTHON": sys.executable,
        }
        # the scripts replace themselves by java, so its id is the process's
        self.start(
            ["env", *(f"{name}={value}" for name, value in own.items()), *command, "spark-internal"],
            self.folder,
            lambda: accepts(self.port),
            seconds=120,
        )

    def is_up(self) -> bool:
        """Return whether it is the process that was started."""
        return self._process is not None and self._process.poll() is None


def without_java() -> dict[str, str]:
    """Return an environment in which no Java can be started."""
    return {**os.environ, "JAVA_HOME": "/nowhere", "PATH": "/nowhere"}
