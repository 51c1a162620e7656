"""Checks before Spark starts whether it can follow sources, and whether Delta's package fits it."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pyspark

from balog.analytics.reading.stream_planner import STREAMS, can_stream
from balog.errors import ConfigError

_SETTINGS = re.compile(r"\s*spark\.jars(?:\.packages)?[\s=:](.*)")


def check_catalog(location: str, *, follow: bool) -> None:
    """Check that the Spark of this process can load into a location.

    Args:
        location: of the tables. Packages that only the cluster has are not checked.
        follow: whether to load continuously.

    Raises:
        ConfigError: this Spark can't follow sources, or the package of the location's catalog is for another Spark.
    """
    is_delta = location.startswith("delta:")
    if follow and not can_stream():
        what = f"install pyspark=={STREAMS}.*" + (f" and delta-spark_{STREAMS}_2.13" if is_delta else "")
        reason = f"needs Spark {STREAMS} or newer, and this is {pyspark.__version__}; {what}"
        raise ConfigError(f"{reason}; or load at intervals, without --follow", "--follow")
    if not is_delta:
        return
    this = ".".join(pyspark.__version__.split(".")[:2])
    found = sorted(set(re.findall(r"delta-spark_(\d+\.\d+)_", _jars())))
    if found and this not in found:
        do = f"name its package for Spark {this} in spark-defaults.conf, or install pyspark=={found[-1]}.*"
        raise ConfigError(
            f"delta-spark_{found[-1]} is for Spark {found[-1]}, and this is {pyspark.__version__}; {do}", location
        )


def _jars() -> str:
    """Return the names of the jars and packages that the driver loads, of its configuration and of Spark's home."""
    home = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
    conf = Path(os.environ.get("SPARK_CONF_DIR") or home / "conf", "spark-defaults.conf")
    text = conf.read_text(errors="replace") if conf.is_file() else ""
    settings = [found[1] for line in text.splitlines() if (found := _SETTINGS.match(line))]
    return " ".join([*settings, *(path.name for path in home.glob("jars/*.jar"))])
