"""A tap in one page: the customers of a shop.

python examples/shop_server.py -- python examples/tap_cool.py
"""

from balog.tap import Tap
from balog.tap.credentials import header
from balog.tap.http import Client
from balog.tap.patterns import by_cursor, pages

tap = Tap("tap-cool", config_spec=["base_url", "access_token"])


@tap.client
def client(config):
    return Client(config["base_url"], auth=header("X-Api-Key", config["access_token"]))


@tap.stream("customers", key_properties=["id"], replication_key="updated_at", bookmark_strategy=tap.every_n(100))
def customers(client, context):
    def fetch(cursor):
        return client.get("v1/customers", {"updated_since": context.bookmark, "cursor": cursor})

    yield from pages(fetch, by_cursor("next_cursor"), items="data")


tap.schema(
    "customers",
    {
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "name": {"type": "string"},
            "email": {"type": "string"},
            "created_at": {"type": "string", "format": "date-time"},
            "updated_at": {"type": "string", "format": "date-time"},
        },
    },
)

if __name__ == "__main__":
    tap.run()
