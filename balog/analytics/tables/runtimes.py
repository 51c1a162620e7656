"""Checks before Spark starts whether it can follow sources, and whether the packages of Iceberg and Delta fit it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

import pyspark

from balog.analytics.reading.stream_planner import STREAMS, can_stream
from balog.errors import ConfigError


class _Package(NamedTuple):
    """A catalog's package: its name, which ends with the Spark that it is for, and how to follow sources with it."""

    name: str
    to_follow: str


_PACKAGES = {
    "iceberg": _Package("iceberg-spark-runtime-", "Iceberg 1.12 has packages up to Spark 4.1"),
    "delta": _Package("delta-spark_", f"install pyspark=={STREAMS}.* and delta-spark_{STREAMS}_2.13"),
}
_SETTINGS = re.compile(r"\s*spark\.jars(?:\.packages)?[\s=:](.*)")


def check_catalog(location: str, *, follow: bool) -> None:
    """Check that the Spark of this process can load into a location.

    Args:
        location: of the tables. Packages that only the cluster has are not checked.
        follow: whether to load continuously.

    Raises:
        ConfigError: this Spark can't follow sources, or the package of the location's catalog is for another Spark.
    """
    package = _PACKAGES.get(location.partition(":")[0])
    if follow and not can_stream():
        what = package.to_follow if package else f"install pyspark=={STREAMS}.*"
        reason = f"needs Spark {STREAMS} or newer, and this is {pyspark.__version__}; {what}"
        raise ConfigError(f"{reason}; or load at intervals, without --follow", "--follow")
    if package is None:
        return
    this = ".".join(pyspark.__version__.split(".")[:2])
    found = sorted(set(re.findall(rf"{package.name}(\d+\.\d+)_", _jars())))
    if found and this not in found:
        do = f"name its package for Spark {this} in spark-defaults.conf, or install pyspark=={found[-1]}.*"
        if follow and package.name.startswith("iceberg"):
            do = f"{package.to_follow}, and --follow needs {STREAMS}: load at intervals with pyspark=={found[-1]}.*"
        name = f"{package.name}{found[-1]}"
        raise ConfigError(f"{name} is for Spark {found[-1]}, and this is {pyspark.__version__}; {do}", location)


def _jars() -> str:
    """Return the names of the jars and packages that the driver loads, of its configuration and of Spark's home."""
    home = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
    conf = Path(os.environ.get("SPARK_CONF_DIR") or home / "conf", "spark-defaults.conf")
    text = conf.read_text(errors="replace") if conf.is_file() else ""
    settings = [found[1] for line in text.splitlines() if (found := _SETTINGS.match(line))]
    return " ".join([*settings, *(path.name for path in home.glob("jars/*.jar"))])
