"""The tap of `benchmarks.tap` on the Meltano SDK: `python tap_sdk.py RECORDS {json,msgspec}`."""

import sys

import tap_work
from singer_sdk import Stream, Tap
from singer_sdk import typing as th

count, way = int(sys.argv[1]), sys.argv[2]
given = tap_work.records(count)


class Users(Stream):
    name = "users"
    primary_keys = ("id",)
    replication_key = "updated_at"
    is_sorted = True
    schema = tap_work.SCHEMA

    def get_records(self, context):
        yield from given


class Bench(Tap):
    name = "tap-bench"
    config_jsonschema = th.PropertiesList().to_dict()

    def discover_streams(self):
        return [Users(self)]


if way == "msgspec":
    from singer_sdk.contrib.msgspec import MsgSpecWriter

    Bench.message_writer_class = MsgSpecWriter

tap = Bench(config={})
with tap_work.timed():
    tap.sync_all()
