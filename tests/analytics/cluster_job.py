"""What ``test_cluster`` runs in a process of its own: load events, make reports, tell the numbers.

python cluster_job.py SOURCE TABLES
"""

import json
import sys

from balog.analytics import session
from balog.analytics.reporting.query import parse_query
from balog.analytics.reporting.spark_report import make_report
from balog.analytics.tables import open_store, open_tables
from balog.analytics.tables.loader import load


def main(source: str, place: str) -> None:
    # An executor of its own has memory of its own, which is a gigabyte unless one says less.
    spark = session("balog-cluster", master="local-cluster[2,1,1024]", spark_sql_shuffle_partitions=2)
    try:
        store = open_store(spark, place)
        with store.writing():
            summary = load(spark, store, [source])
        told = {"rows": dict(summary.rows), "duplicates": summary.duplicates}
        told["tables"] = {name: open_tables(spark, place).frame(name).count() for name in ("events", "metric", "run")}
        for name, paths in (("raw", [source]), ("stored", [place])):
            report = make_report(spark, paths, parse_query())
            channels = {f"{row.channel} {row.level}": row.events for row in report.channels}
            told[name] = {"channels": channels, "runs": sorted(run.run_id for run in report.runs)}
            told[name]["bad"] = sum(row.lines for row in report.quarantine)
        sys.stdout.write(json.dumps(told) + "\n")
    finally:
        spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
