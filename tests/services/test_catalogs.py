"""Tables in a Hive metastore (Derby), in Iceberg and in Delta Lake, each with its real classes.

Each runs in a process of its own, since a session's catalogs are decided at its start. Neither Iceberg nor Delta is
made for the Spark that the tests have, so theirs is the newest one that both are made for, in its own environment.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.services.servers.process import CACHE, fetch, java

pytestmark = pytest.mark.service

ROOT = Path(__file__).parents[2]
SPARK = "4.1"
JARS = {
    "iceberg": ("org.apache.iceberg", f"iceberg-spark-runtime-{SPARK}_2.13", "1.12.0"),
    "delta": ("io.delta", f"delta-spark_{SPARK}_2.13", "4.4.0"),
}
OUTSIDE = "org.apache.hadoop,org.scala-lang,org.apache.parquet,org.apache.logging.log4j,org.slf4j"
"""Groups that Delta's package names and Spark has."""


def jars(kind: str) -> str:
    """Give the jars of a package, comma-separated."""
    java(kind)
    group, name, version = JARS[kind]
    folder = CACHE / f"{name}-{version}"
    if not folder.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
            pom = Path(scratch, "pom.xml")
            pom.write_text(
                '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
                f"<groupId>balog</groupId><artifactId>{kind}</artifactId><version>1</version><dependencies><dependency>"
                f"<groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>"
                "</dependency></dependencies></project>"
            )
            target = Path(scratch, "jars")
            options = (f"-DoutputDirectory={target}", "-DincludeScope=runtime", f"-DexcludeGroupIds={OUTSIDE}")
            fetch("copy-dependencies", "-f", str(pom), *options, for_whom=kind)
            target.rename(folder)
    return ",".join(sorted(map(str, folder.glob("*.jar"))))


@pytest.fixture(scope="module")
def other_spark(checkout: Path) -> Path:
    """The Python of an environment with the Spark that Iceberg and Delta are made for; it is kept in the cache."""
    folder = CACHE / f"pyspark-{SPARK}"
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["sh", ".ci/install", folder, f"pyspark=={SPARK}.*", "pyarrow>=15", "pandas<3", "duckdb", checkout],
        cwd=ROOT,
        env={**os.environ, "PATH": path, "PYTHON": sys.executable},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=900,
    )
    if done.returncode:
        pytest.skip(f"Spark {SPARK} can't be installed: {done.stderr.strip()[-300:]}")
    return folder / "bin" / "python"


def run(python: str | Path, place: str, folder: Path, **settings: str) -> dict[str, Any]:
    settings = {"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "1"} | settings
    done = subprocess.run(
        [python, ROOT / "tests" / "services" / "catalog_steps.py", place, json.dumps(settings)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
    )
    said = [line for line in done.stdout.splitlines() if line.startswith("SAID ")]
    assert said, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(said[0].removeprefix("SAID "))
    return found


@pytest.fixture(scope="module", params=["hive", "iceberg", "delta"])
def said(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder, kind = tmp_path_factory.mktemp(request.param), request.param
    if kind == "hive":
        settings = {"spark.sql.warehouse.dir": str(folder / "warehouse")}
        return {"kind": kind, **run(sys.executable, f"hive:balog?location={folder}/tables", folder, **settings)}
    settings = {"spark.jars": jars(kind)}
    if kind == "delta":
        settings |= {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.databricks.delta.snapshotPartitions": "1",  # few rows would be thousands of tasks
            "spark.sql.sources.parallelPartitionDiscovery.parallelism": "1",
        }
    place = f"delta:{folder}/tables"
    if kind == "iceberg":
        place = f"iceberg:lake.db?location={folder}/log"
        catalog = "spark.sql.catalog.lake"
        settings |= {
            catalog: "org.apache.iceberg.spark.SparkCatalog",
            f"{catalog}.type": "hadoop",
            f"{catalog}.warehouse": str(folder / "warehouse"),
        }
    return {"kind": kind, **run(request.getfixturevalue("other_spark"), place, folder, **settings)}


def test_a_new_place_has_no_tables(said: dict[str, Any]) -> None:
    assert said["empty"] == [[], None]


def test_a_batch_that_is_told_twice_is_there_once_and_tables_grow_over_what_they_have(said: dict[str, Any]) -> None:
    one, two, three = said["grown"]
    assert one == {
        "id": "LG1",
        "timestamp": "2026-11-20T07:46:12.000Z",
        "a": 1,
        "s": {"x": 1, "l": [{"y": 1.5}]},
        "date": "2026-11-20",
    }
    assert (two["a"], two["date"], "s" in two) == (2, "2026-11-21", False)
    assert (three["a"], three["s"]) == (2**40, {"x": 2**40, "l": [{"y": 2.5, "w": "new"}], "z": "it's"})
    assert three["größe_2"] == 2**70


def test_the_schema_comes_back_with_the_fields_names(said: dict[str, Any]) -> None:
    assert said["steps"] == 0
    assert said["field"] == {"field": "Größe"}
    assert said["columns"] == ["id", "timestamp", "a", "s", "größe_2", "date"]


def test_after_a_kill_in_the_middle_the_batch_is_there_once(said: dict[str, Any]) -> None:
    if said["kind"] != "hive":
        assert said["between"] == [5, 3]
    assert said["after"] == [["LG1", "LG2", "LG3", "LG4", "LG5"]] * 2
    assert said["loaded"] == ["a.jsonl"]


def test_days_outside_of_the_time_are_left_out(said: dict[str, Any]) -> None:
    assert said["since"] == ["LG2", "LG5"]


def test_old_days_go_and_the_others_stay_over_a_compaction(said: dict[str, Any]) -> None:
    assert [line.split(":")[0] for line in said["dry"]] == ["events", "thing"]
    assert said["expired"] == said["compacted"] == ["LG2", "LG5"]


def test_the_metastore_knows_tables_partitions_and_rows(said: dict[str, Any]) -> None:
    if said["kind"] == "hive":
        assert said["hive"] == {
            "tables": ["events", "thing"],
            "partitions": ["date=2026-11-21"],
            "rows": ['{"id":"LG2","a":2}', '{"id":"LG5","a":5}'],
        }
