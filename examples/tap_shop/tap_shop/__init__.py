"""tap-shop: the customers, orders and currencies of a shop."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from balog.tap import Context, Tap
from balog.tap.credentials import RefreshToken, bearer
from balog.tap.http import Client, Policy, Response
from balog.tap.patterns import by_cursor, by_link, date_windows, pages, request_then_emit
from balog.tap.schema import json_folder

__all__ = ["tap"]

CONFIG = {
    "type": "object",
    "required": ["base_url", "client_id", "client_secret", "refresh_token", "start_date"],
    "properties": {
        "base_url": {"type": "string", "description": "The URL of the shop."},
        "client_id": {"type": "string"},
        "client_secret": {"type": "string", "secret": True},
        "refresh_token": {"type": "string", "secret": True, "description": "Valid once; the shop returns a new one."},
        "config_path": {"type": "string", "description": "The file that stores the new refresh token."},
        "start_date": {"type": "string", "format": "date-time"},
    },
}

_TIME = "%Y-%m-%dT%H:%M:%S.%fZ"

tap = Tap("tap-shop", config_spec=CONFIG)
tap.schema(source=json_folder("schemas"))


@tap.client
def client(config: dict[str, Any]) -> Client:
    """Make a client whose token is refreshed before it expires, and when the shop rejects it."""
    token = RefreshToken(
        f"{config['base_url']}/oauth/token",
        config["client_id"],
        config["client_secret"],
        config["refresh_token"],
        config_path=config.get("config_path"),
    )
    return Client(f"{config['base_url']}/v1", auth=bearer(token), policy=Policy(tries=10, first=0.1, longest=2))


@tap.stream(
    "customers",
    key_properties=["id"],
    replication_key="updated_at",
    created_key="created_at",
    bookmark_strategy=tap.every_n(100),
)
def customers(client: Client, context: Context) -> Iterator[list[Any]]:
    """Yield customers, which the shop sorts by the time of their change."""

    def fetch(cursor: str | None) -> Any:
        return client.get("customers", {"updated_since": context.bookmark, "cursor": cursor})

    return pages(fetch, by_cursor("next_cursor"), items="data", may_repeat=False)


@tap.stream("orders", key_properties=["id"], replication_key="changed_at", bookmark_strategy=tap.every_n(20))
def orders(client: Client, context: Context) -> Iterator[list[Any]]:
    """Yield orders, which the shop does not sort: sorted by month, so that every state is correct."""
    for window in date_windows(context.bookmark, context.now, months=1):
        query = {"from": f"{window.start:{_TIME}}", "until": f"{window.end:{_TIME}}"}
        # The first request has the window, the others the URL of the next page.
        found = pages(partial(_orders, client, query), by_link(), items="orders")
        yield from request_then_emit(found, "changed_at")


def _orders(client: Client, query: dict[str, str], url: str | None) -> Response:
    return client.get(url) if url else client.get("orders", query)


@orders.substream("order_lines", key_properties=["order_id", "line"])
def order_lines(client: Client, parent: dict[str, Any]) -> list[Any]:
    """Return the lines of an order."""
    found: list[Any] = client.get(f"orders/{parent['id']}/lines").json()["lines"]
    return found


@tap.stream("currencies", key_properties=["code"])
def currencies(client: Client, context: Context) -> Iterator[Any]:
    """Yield all currencies; those that the shop no longer has are deleted from the target, too."""
    with context.full_table():
        yield client.get("currencies").json()
