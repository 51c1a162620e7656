"""The tap of `benchmarks.tap` on singer-python: `python tap_singer.py RECORDS {plain,transformer}`."""

import sys

import singer
import tap_work
from singer import metadata

count, way = int(sys.argv[1]), sys.argv[2]
given = tap_work.records(count)
mdata = metadata.to_map(
    metadata.get_standard_metadata(
        schema=tap_work.SCHEMA,
        key_properties=["id"],
        valid_replication_keys=["updated_at"],
        replication_method="INCREMENTAL",
    )
)


def sync() -> None:
    state: dict = {}
    singer.write_schema("users", tap_work.SCHEMA, ["id"], ["updated_at"])
    highest = ""
    if way == "plain":
        for record in given:
            singer.write_record("users", record)
            highest = max(highest, record["updated_at"])
    else:
        with singer.Transformer() as transformer:
            for record in given:
                singer.write_record("users", transformer.transform(record, tap_work.SCHEMA, mdata))
                highest = max(highest, record["updated_at"])
    singer.write_state(singer.write_bookmark(state, "users", "updated_at", highest))


with tap_work.timed():
    sync()
