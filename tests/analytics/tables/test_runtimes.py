"""What is wrong with a Spark or with a catalog's package is one line, before Spark starts."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from balog.cli import main

pytest.importorskip("pyspark", reason="pyspark is not installed")
import pyspark

from balog.analytics.reading import stream_planner
from balog.analytics.tables.runtimes import check_catalog
from balog.errors import ConfigError

DELTA = "spark.jars.packages=org.a:b:1,io.delta:delta-spark_4.2_2.13:4.4.0\n"


@pytest.fixture
def conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.delenv("SPARK_HOME", raising=False)
    return tmp_path / "spark-defaults.conf"


def is_spark(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setattr(pyspark, "__version__", version)
    streams = version >= "4.2"
    monkeypatch.setattr(stream_planner, "find_spec", lambda name: name if streams else None)


@pytest.mark.parametrize(
    ("location", "version", "settings", "follow"),
    [
        ("tables", "4.3.0", DELTA, True),
        ("tables", "4.1.1", "", False),
        ("hive:db", "4.3.0", DELTA, True),
        ("delta:/lake", "4.3.0", "", True),  # the cluster may have a package for it
        ("delta:/lake", "4.3.0", "# " + DELTA, False),
        ("delta:/lake", "4.3.0.dev1", DELTA.replace("4.2_", "4.3_"), True),
        ("delta:/lake", "4.2.1", DELTA, True),
        ("delta:/lake", "4.1.1", "spark.jars delta-spark_2.13-4.0.0.jar", False),  # it does not name its Spark
    ],
)
def test_what_may_work_is_tried(
    conf: Path, monkeypatch: pytest.MonkeyPatch, location: str, version: str, settings: str, follow: bool
) -> None:
    conf.write_text(settings)
    is_spark(monkeypatch, version)
    check_catalog(location, follow=follow)


@pytest.mark.parametrize(
    ("location", "version", "settings", "follow", "line"),
    [
        (
            "delta:/lake", "4.1.1", "", True,
            "--follow: needs Spark 4.2 or newer, and this is 4.1.1; install pyspark==4.2.* and "
            "delta-spark_4.2_2.13; or load at intervals, without --follow",
        ),
        (
            "delta:/lake", "4.3.0", DELTA, True,
            "delta:/lake: delta-spark_4.2 is for Spark 4.2, and this is 4.3.0; name its package for Spark 4.3 in "
            "spark-defaults.conf, or install pyspark==4.2.*",
        ),
        (
            "tables", "4.1.1", "", True,
            "--follow: needs Spark 4.2 or newer, and this is 4.1.1; install pyspark==4.2.*; or load at intervals, "
            "without --follow",
        ),
    ],
)  # fmt: skip
def test_what_can_not_work_is_said_with_what_to_do(
    conf: Path, monkeypatch: pytest.MonkeyPatch, location: str, version: str, settings: str, follow: bool, line: str
) -> None:
    conf.write_text(settings)
    is_spark(monkeypatch, version)
    with pytest.raises(ConfigError) as raised:
        check_catalog(location, follow=follow)
    assert str(raised.value) == line


def test_a_jar_in_sparks_home_is_seen(conf: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "delta-spark_4.1_2.13-4.4.0.jar").touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    is_spark(monkeypatch, "4.3.0")
    with pytest.raises(ConfigError, match=r"delta-spark_4\.1 is for Spark 4\.1"):
        check_catalog("delta:/lake", follow=False)


def test_the_command_says_it_before_spark_starts(conf: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("balog.analytics.session", lambda *_, **__: pytest.fail("Spark was started"))
    is_spark(monkeypatch, "4.1.1")
    words = ["load", str(tmp_path), "--tables", "delta:/lake", "--follow"]
    done = CliRunner().invoke(main, words)
    assert (done.exit_code, len(done.stderr.splitlines())) == (2, 1)
    assert "--follow: needs Spark 4.2 or newer" in done.stderr
