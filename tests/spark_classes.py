"""An archive of Spark's loaded classes, with which the JVMs of a test run start in two thirds of the processor time.

Made once by ``make test``, by a small load, report and query on Spark::

    python -m tests.spark_classes .demo/spark-classes.jsa

A JVM that is not the one that made it, or has other jars, ignores it.
"""

import os
import sys
import tempfile
from pathlib import Path

SPARK_CLASSES = Path(__file__).parents[1] / ".demo" / "spark-classes.jsa"
# Spark in tests starts often and counts little: its code is not worth a second compilation, which costs half the time.
OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
QUIET = "-Xlog:disable -Xlog:all=error:stderr"


def spark_options() -> str:
    """Return the options of the JVMs that tests start."""
    return f"{OPTIONS} {QUIET} -XX:SharedArchiveFile={SPARK_CLASSES}" if SPARK_CLASSES.exists() else OPTIONS


def make(archive: Path) -> None:
    """Let Spark do what tests let it do, and write the classes that it loaded."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    written = archive.with_suffix(".new")
    os.environ["SPARK_SUBMIT_OPTS"] = f"{OPTIONS} {QUIET} -XX:ArchiveClassesAtExit={written}"

    from balog.analytics import session
    from balog.cli import main
    from benchmarks.generate import lines

    with tempfile.TemporaryDirectory() as scratch:
        dumps, tables = Path(scratch, "dumps.jsonl"), Path(scratch, "tables")
        dumps.write_bytes(b"".join(lines(20_000, seed=1)))
        spark = session("classes", spark_driver_memory="1g")
        java = spark.sparkContext._gateway.proc
        query = f"SELECT level, count(*) AS events FROM balog.`{dumps}` GROUP BY level"
        for words in (
            ["load", str(dumps), "--tables", str(tables)],
            ["report", str(tables), "--engine", "spark", "--no-html"],
            ["query", query, "--source", scratch, "--engine", "spark"],
        ):
            main(words, standalone_mode=False)
        spark.stop()
        java.stdin.close()  # ends the JVM
        java.wait(timeout=300)
    written.rename(archive)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
