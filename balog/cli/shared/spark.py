"""What the commands that run Spark share: options, packages, and a session that ends with the command."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from click import option

from balog.cli.shared.options import bundle
from balog.common.errors import BalogError, ConfigError, MissingExtraError

if TYPE_CHECKING:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession


ENGINES = ("auto", "duckdb", "spark")


class SparkPlace(NamedTuple):
    """Where Spark runs."""

    master: str | None
    remote: str | None

    @property
    def server(self) -> str:
        """The Spark Connect server: of ``--remote``, or of the variable ``SPARK_REMOTE``; "" for none."""
        return self.remote or ("" if self.master else os.environ.get("SPARK_REMOTE", ""))

    @property
    def waiting(self) -> str:
        """What a command waits for while a session starts, for people."""
        if self.server:
            return "Connecting to the Spark Connect server"
        where = f" at {self.master}" if self.master else ""
        return f"Starting Java and Spark{where}, which takes some seconds"

    def answers(self, engine: str, location: str = "") -> bool:
        """Return whether Spark answers, and not DuckDB: it was chosen, or only it reaches the cluster or catalog.

        Args:
            engine: one of ``ENGINES``.
            location: of the tables; "" without any.

        Raises:
            ConfigError: DuckDB was chosen, which does not reach them.
        """
        catalog = location.partition(":")[0] if location.startswith(("hive:", "delta:")) else ""
        elsewhere = catalog or ("--master" if self.master else "--remote" if self.remote else "")
        if engine == "duckdb" and elsewhere:
            raise ConfigError(f"{elsewhere} needs Spark; leave out --engine duckdb, or give --engine spark", "--engine")
        return engine == "spark" or bool(elsewhere)

    @contextmanager
    def session(
        self,
        application: str,
        settings: Mapping[str, Any] | None = None,
        explain: Callable[[PySparkException], str] | None = None,
    ) -> Iterator[SparkSession]:
        """Start Spark and stop it at the end.

        Args:
            explain: returns the line for an error of Spark in the block; None for the usual one.
            application, settings: see ``balog.analytics.session``.

        Raises:
            BalogError: Spark failed.
        """
        from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
        from pyspark.errors import PySparkException

        from balog.analytics import session
        from balog.analytics.sessions import cause, unwrapped

        with _own_handlers():
            spark = session(application, master=self.master or "", remote=self.remote or "", **(settings or {}))
        try:
            try:
                yield spark
            except (PySparkException, Py4JJavaError) as error:  # explained while Java is there
                known = unwrapped(error) if isinstance(error, Py4JJavaError) else error
                line = explain(known) if explain is not None else f"Spark: {cause(known):.300}; run it again"
                raise BalogError(line) from None
            except (Py4JNetworkError, ConnectionRefusedError, ConnectionResetError):
                reason = "Java ended, perhaps because it needed more memory; look at stderr, and run it again"
                raise BalogError(f"Spark: {reason}") from None
        except KeyboardInterrupt:
            raise  # Java is dead
        except BaseException:
            with suppress(Py4JError, OSError):  # Java may be dead
                spark.stop()
            raise
        else:
            spark.stop()


spark_options = bundle(
    "spark_place",
    SparkPlace,
    option("--master", metavar="URL", help="The cluster to run on; this machine's cores by default."),
    option(
        "--remote", metavar="URL", help="A Spark Connect server to run on, sc://HOST:PORT; $SPARK_REMOTE by default."
    ),
)


@contextmanager
def spark_packages(command: str) -> Iterator[None]:
    """Import Spark's packages in the block.

    Raises:
        MissingExtraError: they are not installed.
    """
    try:
        yield
    except ImportError:
        raise MissingExtraError(command, "spark") from None


def check_tables(location: str) -> None:
    """Check that there are tables at a location.

    Raises:
        ConfigError: it is no location of tables, or there are none.
    """
    from balog.analytics.tables.catalogs.location import check_location, is_tables

    check_location(location)
    if not is_tables(location):
        raise ConfigError("there are no tables; make some: balog load SOURCE --tables PLACE", location)


@contextmanager
def _own_handlers() -> Iterator[None]:
    """Keep Spark from setting a handler of SIGINT, which would ask Java to cancel all jobs, and wait for that."""
    from pyspark import SparkContext

    module = sys.modules[SparkContext.__module__]
    before = vars(module).get("signal")
    if before is None:
        yield
        return
    module.signal = SimpleNamespace(signal=lambda number, handler: None, SIGINT=signal.SIGINT)  # type: ignore[attr-defined]
    try:
        yield
    finally:
        module.signal = before  # type: ignore[attr-defined]
