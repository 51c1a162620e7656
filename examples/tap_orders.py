"""A tap in one page: the customers of a shop, and its orders with their lines. The shop knows it by client credentials.

python examples/shop_server.py -- python examples/tap_orders.py
"""

from balog.tap import RestStream, Tap
from balog.tap.credentials import ClientCredentials, bearer
from balog.tap.http import Client
from balog.tap.schema import json_folder

tap = Tap("tap-orders", config_spec=["base_url", "client_id", "client_secret", "start_date"])
tap.schema(source=json_folder("tap_shop/tap_shop/schemas"))


@tap.client
def client(config):
    token = ClientCredentials(f"{config['base_url']}/oauth/token", config["client_id"], config["client_secret"])
    return Client(f"{config['base_url']}/v1", auth=bearer(token))


@tap.stream()
class Customers(RestStream):
    path, params = "customers", {"updated_since": "{bookmark}"}
    items, paging = "data", "cursor:next_cursor"
    key_properties, replication_key, bookmark_strategy = ["id"], "updated_at", tap.every_n(50)


@tap.stream()
class Orders(RestStream):
    path, params = "orders", {"from": "{bookmark}"}
    items, paging = "orders", "link"
    key_properties, replication_key, is_sorted = ["id"], "changed_at", False


@tap.stream()
class OrderLines(RestStream):
    path, parent, items = "orders/{id}/lines", Orders, "lines"
    key_properties = ["order_id", "line"]


if __name__ == "__main__":
    tap.run()
