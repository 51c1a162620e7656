"""The tap of `benchmarks.tap` on balog.tap: `python tap_balog.py RECORDS {records,pages}`."""

import sys

import tap_work

from balog.tap import Tap

count, way = int(sys.argv[1]), sys.argv[2]
given = tap_work.records(count)
tap = Tap("tap-bench")


@tap.stream("users", key_properties=["id"], replication_key="updated_at")
def users(context):
    if way == "pages":
        for start in range(0, count, 100):
            yield given[start : start + 100]
    else:
        yield from given


tap.schema("users", tap_work.SCHEMA)
with tap_work.timed():
    tap.run([])
