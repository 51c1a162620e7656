"""A standalone cluster of Spark on loopback: a master and workers of one core, each a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import click
import pyspark

from balog.analytics.sessions import find_java, wrap

__all__ = ["standalone"]

_CLASSES = "org.apache.spark.deploy"
_START = 300.0  # seconds until a process has to be ready


@contextmanager
def standalone(workers: int, folder: Path) -> Iterator[str]:
    """Run a master and workers of one core and 1 GB for the block, with the scripts of Spark's own wheel.

    Args:
        workers: how many.
        folder: where their logs and the folders of their applications are.

    Yields:
        The master's URL.

    Raises:
        ClickException: a process did not start in five minutes; with the end of its log.
    """
    folder.mkdir(parents=True, exist_ok=True)
    home = Path(pyspark.__file__).parent
    environment = {
        **os.environ,
        "JAVA_HOME": str(wrap(find_java(), folder / "java")),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",  # for the pages of master and workers, too
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
        "PYSPARK_PYTHON": sys.executable,
    }
    address = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    with ExitStack() as running:

        def begin(name: str, *words: str) -> Path:
            log = folder / f"{name}.log"
            with log.open("wb") as out:
                command = [home / "bin" / "spark-class", f"{_CLASSES}.{words[0]}", *address, *words[1:]]
                process = subprocess.Popen(command, env=environment, stdout=out, stderr=subprocess.STDOUT)
            running.callback(_end, process)
            return log

        log = begin("master", "master.Master")
        url = _lines(log, r"Starting Spark master at (spark://\S+)", 1)[0]
        for number in range(workers):
            apps = str(folder / f"worker-{number}")
            begin(f"worker-{number}", "worker.Worker", "--cores", "1", "--memory", "1g", "--work-dir", apps, url)
        _lines(log, r"Registering worker (\S+)", workers)
        yield url


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _lines(log: Path, pattern: str, count: int) -> list[str]:
    """Wait until a log has a line so many times, and return what each says."""
    until = time.monotonic() + _START
    while True:
        found: list[str] = re.findall(pattern, log.read_text(errors="replace"))
        if len(found) >= count:
            return found
        if time.monotonic() > until:
            end = " / ".join(log.read_text(errors="replace").splitlines()[-3:])
            raise click.ClickException(f"Spark's {log.stem} is not ready after {_START:.0f} s: {end:.500}")
        time.sleep(0.1)
