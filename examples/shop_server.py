"""A shop's API, as many are: tokens that end, pages by cursor and by link, faults when asked for. Needs no package.

    python examples/shop_server.py --port 8080 --fail-every 10
    python examples/shop_server.py -- python examples/tap_cool.py

The second runs a command beside the shop, on a free port, with the shop's address and keys in the environment variables
that the taps take as their config. ``tap_shop`` reads the shop, ``tap_orders.py`` and ``tap_cool.py`` parts of it.
In tests: ``with Shop() as shop: … shop.url``.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import random
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

__all__ = ["Refusal", "Shop"]

_BEGIN = datetime(2026, 1, 1, tzinfo=timezone.utc)
_CURRENCIES = {"CHF": "Swiss Franc", "EUR": "Euro", "GBP": "Pound Sterling", "JPY": "Yen", "USD": "US Dollar"}
_NAMES = ("Ada", "Björk", "Chiyo", "Dmitri", "Esi", "Farid", "Grace", "Hōne", "Inés", "Jun")


class Refusal(Exception):
    """An answer that is no success."""

    def __init__(self, status: int, error: str, **headers: str) -> None:
        super().__init__(error)
        self.status = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class Shop:
    """The shop's data, the same each time, and its server on 127.0.0.1, which can be stopped and started again.

    Args:
        customers: how many there are; there are twice as many orders.
        token_seconds: how long an access token is good.
        token_requests: for how many requests an access token is good; None for any number.
        keeps_refresh_token: the refresh token stays good.
        fail_every: of so many requests one is answered by 503.
        port: 0 takes a free one.

    Attributes:
        requests: method and path of each request that came, in order.
        repeats: pages of customers then come again and again: ``"cursor"`` gives the same cursor, ``"content"`` new
            cursors to the same page.
        key: an API key, which is good for ever; what ``tap_cool.py`` uses.
        refresh_token: the one that is good now; each is good once, unless ``keeps_refresh_token``.
    """

    client_id, client_secret = "tap-shop", "example-secret"

    def __init__(
        self,
        customers: int = 120,
        *,
        token_seconds: float = 60,
        token_requests: int | None = None,
        keeps_refresh_token: bool = False,
        fail_every: int = 0,
        port: int = 0,
    ) -> None:
        self.token_seconds = token_seconds
        self.token_requests = token_requests
        self.keeps_refresh_token = keeps_refresh_token
        self.fail_every = fail_every
        self.repeats = ""
        self.key = "example-key"
        self.refresh_token = "example-refresh-token"
        self.requests: list[tuple[str, str]] = []
        self.before: Callable[[str], None] = lambda path: None
        """Called with each request's path before it is answered; a test may do something there, or raise Refusal."""
        self._tokens: dict[str, list[float]] = {}
        self._faults: list[Refusal] = []
        self._lock = threading.RLock()
        self._port = port
        self._server: _Server | None = None
        self._make_data(customers)

    # -- data -----------------------------------------------------------------------------------------------------

    def _make_data(self, count: int) -> None:
        chance = random.Random(20260101)
        span = timedelta(days=180).total_seconds()
        times = sorted(_BEGIN + timedelta(seconds=int(chance.random() * span)) for _ in range(count))
        self.customers = {
            number: {
                "id": number,
                "name": f"{chance.choice(_NAMES)} {number}",
                "email": f"customer{number}@example.com",
                "created_at": _text(at - timedelta(days=30)),
                "updated_at": _text(at),
            }
            for number, at in enumerate(times, 1)
        }
        self.orders: dict[int, dict[str, Any]] = {}
        self.lines: dict[int, list[dict[str, Any]]] = {}
        for number in range(1, 2 * count + 1):
            at = _BEGIN + timedelta(seconds=int(chance.random() * span))
            lines: list[dict[str, Any]] = [
                {
                    "order_id": number,
                    "line": line,
                    "sku": f"sku-{chance.randrange(40)}",
                    "quantity": chance.randint(1, 9),
                }
                for line in range(1, chance.randint(1, 4) + 1)
            ]
            self.lines[number] = lines
            self.orders[number] = {
                "id": number,
                "customer_id": chance.randint(1, count),
                "currency": chance.choice(list(_CURRENCIES)),
                "total": round(sum(line["quantity"] for line in lines) * 9.95, 2),
                "changed_at": _text(at),
            }
        self.currencies = [{"code": code, "name": name} for code, name in _CURRENCIES.items()]

    def touch(self, *, customers: int = 0, orders: int = 0) -> None:
        """Change the first so many customers and orders now."""
        now = _text(datetime.now(timezone.utc))
        with self._lock:
            for number in range(1, customers + 1):
                self.customers[number] = {**self.customers[number], "updated_at": now}
            for number in range(1, orders + 1):
                self.orders[number] = {**self.orders[number], "changed_at": now}

    # -- faults ---------------------------------------------------------------------------------------------------

    def fail(self, status: int, times: int = 1, **headers: str) -> None:
        """Answer the next requests, but not those for tokens, with a status; ``Retry_After="1"`` is a header of it."""
        with self._lock:
            self._faults += [Refusal(status, "on request", **headers) for _ in range(times)]

    # -- answers --------------------------------------------------------------------------------------------------

    def answer(self, method: str, url: str, headers: Any, body: bytes) -> tuple[Any, dict[str, str]]:
        """Give the document and the headers that answer a request.

        Raises:
            Refusal: it is answered by another status than 200.
        """
        parts = urlsplit(url)
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        self.before(parts.path)
        with self._lock:
            self.requests.append((method, url))
            if (method, parts.path) == ("POST", "/oauth/token"):
                return self._grant({name: values[-1] for name, values in parse_qs(body.decode()).items()}), {}
            if self._faults:
                raise self._faults.pop(0)
            if self.fail_every and len(self.requests) % self.fail_every == 0:
                raise Refusal(503, "busy", Retry_After="0")
            self._admit(headers.get("Authorization", ""), headers.get("X-Api-Key", ""))
            path = parts.path.strip("/").split("/")
            if path == ["v1", "customers"]:
                return self._customers(query), {}
            if path == ["v1", "orders"]:
                return self._orders(query)
            if path[:2] == ["v1", "orders"] and path[3:] == ["lines"] and path[2].isdecimal():
                return {"lines": self.lines.get(int(path[2]), [])}, {}
            if path == ["v1", "currencies"]:
                return self.currencies, {}
            raise Refusal(404, "no such thing")

    def _grant(self, form: dict[str, str]) -> dict[str, Any]:
        if (form.get("client_id"), form.get("client_secret")) != (self.client_id, self.client_secret):
            raise Refusal(401, "invalid_client")
        is_renewal = form.get("grant_type") != "client_credentials"
        if is_renewal and (form.get("grant_type"), form.get("refresh_token")) != ("refresh_token", self.refresh_token):
            raise Refusal(400, "invalid_grant")
        token = secrets.token_hex(16)
        self._tokens[token] = [time.monotonic() + self.token_seconds, self.token_requests or float("inf")]
        granted: dict[str, Any] = {"access_token": token, "expires_in": self.token_seconds}
        if is_renewal and not self.keeps_refresh_token:
            granted["refresh_token"] = self.refresh_token = secrets.token_hex(16)
        return granted

    def _admit(self, authorization: str, key: str) -> None:
        if key == self.key:
            return
        token = self._tokens.get(authorization.removeprefix("Bearer "))
        if token is None or time.monotonic() > token[0] or token[1] < 1:
            raise Refusal(401, "the token is not good")
        token[1] -= 1

    def _customers(self, query: dict[str, str]) -> dict[str, Any]:
        """Give customers in the order of their change, by cursor."""
        limit = min(int(query.get("limit", 50)), 100)
        after = _opened(query["cursor"]) if "cursor" in query else [query.get("updated_since", ""), 0]
        rows = sorted(self.customers.values(), key=lambda row: (row["updated_at"], row["id"]))
        rows = [row for row in rows if [row["updated_at"], row["id"]] > after]
        page, has_more = rows[:limit], len(rows) > limit
        if self.repeats == "cursor":
            return {"data": page, "next_cursor": _sealed(after)}
        if self.repeats == "content":
            return {"data": rows[:limit], "next_cursor": _sealed([*after[:2], len(self.requests)])}
        last = [page[-1]["updated_at"], page[-1]["id"]] if page else after
        return {"data": page, "next_cursor": _sealed(last) if has_more else None}

    def _orders(self, query: dict[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
        """Give the orders that were changed in a time in the order of their ids, by pages; the next is in ``Link``."""
        size, page = 50, int(query.get("page", 1))
        first, last = query.get("from", ""), query.get("until", "9999")
        rows = [row for row in self.orders.values() if first <= row["changed_at"] < last]
        link = {}
        if len(rows) > page * size:
            link = {"Link": f'</v1/orders?{urlencode({**query, "page": page + 1})}>; rel="next"'}
        return {"orders": rows[(page - 1) * size : page * size]}, link

    # -- the server -----------------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> Shop:
        """Begin to answer; again on the same port."""
        self._server = _Server(("127.0.0.1", self._port), self)
        self._port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def stop(self) -> None:
        """Close the port and every connection, as if it was killed; its data stays."""
        server, self._server = self._server, None
        if server is not None:
            server.end()

    def __enter__(self) -> Shop:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], shop: Shop) -> None:
        self.shop = shop
        self._open: set[Any] = set()
        super().__init__(address, _Handler)

    def finish_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        try:
            super().finish_request(request, client_address)
        finally:
            self._open.discard(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no trouble of the server's."""

    def end(self) -> None:
        self.shutdown()
        self.server_close()
        for connection in list(self._open):
            try:
                connection.shutdown(2)
            except OSError:
                pass  # it has just gone


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers: dict[str, str] = {}
        try:
            document, headers = self.server.shop.answer(self.command, self.path, self.headers, body)
            status = 200
        except Refusal as refusal:
            status, document, headers = refusal.status, {"error": str(refusal)}, refusal.headers
        data = json.dumps(document).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = _serve

    def log_message(self, *_: object) -> None:
        """Nothing on stderr."""


def _text(at: datetime) -> str:
    return at.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _sealed(position: list[Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(position).encode()).decode()


def _opened(cursor: str) -> list[Any]:
    position: list[Any] = json.loads(base64.urlsafe_b64decode(cursor))
    return position[:2]


def _variables(shop: Shop) -> dict[str, str]:
    """Give the config of the taps as environment variables."""
    return {
        "TAP_COOL_BASE_URL": shop.url,
        "TAP_COOL_ACCESS_TOKEN": shop.key,
        "TAP_ORDERS_BASE_URL": shop.url,
        "TAP_ORDERS_CLIENT_ID": shop.client_id,
        "TAP_ORDERS_CLIENT_SECRET": shop.client_secret,
        "TAP_ORDERS_START_DATE": _text(_BEGIN),
        "TAP_SHOP_BASE_URL": shop.url,
        "TAP_SHOP_CLIENT_ID": shop.client_id,
        "TAP_SHOP_CLIENT_SECRET": shop.client_secret,
        "TAP_SHOP_REFRESH_TOKEN": shop.refresh_token,
        "TAP_SHOP_START_DATE": _text(_BEGIN),
    }


def main() -> int:
    """Serve until Ctrl-C, or until the command has ended; give its exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--port", type=int)
    parser.add_argument("--customers", type=int, default=120)
    parser.add_argument("--token-seconds", type=float, default=60)
    parser.add_argument("--fail-every", type=int, default=0)
    parser.add_argument("command", nargs="*")
    given = parser.parse_args()
    shop = Shop(
        given.customers,
        token_seconds=given.token_seconds,
        keeps_refresh_token=True,
        fail_every=given.fail_every,
        port=(0 if given.command else 8080) if given.port is None else given.port,
    )
    with shop:
        if given.command:
            return subprocess.run(given.command, env={**os.environ, **_variables(shop)}, check=False).returncode
        print(f"{shop.url}: API key {shop.key}, refresh token {shop.refresh_token}", flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
