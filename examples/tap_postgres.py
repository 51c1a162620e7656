"""A tap of a PostgreSQL database: its tables and views are found when it runs.

TAP_POSTGRES_URL=postgresql+psycopg2://user:password@host/name python examples/tap_postgres.py --discover
"""

from balog.tap import Tap
from balog.tap.sql import Database, TableStream

URL = {"type": "string", "secret": True, "description": "SQLAlchemy's URL of the database."}
tap = Tap("tap-postgres", config_spec={"properties": {"url": URL, "slot": {"type": "string"}}, "required": ["url"]})


@tap.client
def client(config):
    return Database(config["url"], slot=config.get("slot"))


@tap.discover(reader=TableStream)
def tables(client, context):
    return TableStream.find(client, context)


if __name__ == "__main__":
    tap.run()
