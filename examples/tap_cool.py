"""A tap in one page: the customers of a shop.

python examples/shop_server.py -- python examples/tap_cool.py
"""

from balog.tap import Tap
from balog.tap.credentials import header
from balog.tap.http import Client
from balog.tap.patterns import by_cursor, pages
from balog.tap.schema.types import date_time, integer, obj, string

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
    obj(
        {
            "id": integer(null=False),
            "name": string(),
            "email": string(format="email"),
            "created_at": date_time(),
            "updated_at": date_time(),
        }
    ),
)

if __name__ == "__main__":
    tap.run()
