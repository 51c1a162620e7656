"""A tap of the toolkit, as one page has it: one incremental stream, one full table with versions, one of children."""

from datetime import datetime, timedelta, timezone

from balog.tap import Tap

tap = Tap("tap-own", config_spec=["account", "access_token"])
FIRST = datetime(2026, 11, 20, tzinfo=timezone.utc)


@tap.stream(
    "contacts",
    key_properties=["id"],
    replication_key="date_modified",
    bookmark_strategy=tap.every_n(100),
    schema={
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "date_modified": {"type": "string", "format": "date-time"},
            "note": {"type": ["null", "string"]},
        },
    },
)
def contacts(context):
    for number in range(600):
        when = (FIRST + timedelta(minutes=number)).isoformat().replace("+00:00", "Z")
        if context.bookmark is None or when >= context.bookmark:
            yield {"id": number, "date_modified": when, "note": "n" * 50}


SHOPS = {"type": "object", "properties": {"id": {"type": "integer"}, "name": {"type": ["null", "string"]}}}


@tap.stream("shops", key_properties=["id"], schema=SHOPS)
def shops(context):
    with context.full_table():
        for number in range(20):
            yield {"id": number, "name": f"shop {number}"}


if __name__ == "__main__":
    tap.run()
