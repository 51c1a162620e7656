"""The scrape target of a Prometheus: GET /metrics of a small HTTP server, by default on loopback."""

from __future__ import annotations

import socket
from functools import partial
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from balog.sinks.base import SinkError
from balog.sinks.measuring.families import Families

if TYPE_CHECKING:
    from balog.sinks.measuring.scrape_server import PageServer


class Listen(Struct, forbid_unknown_fields=True, kw_only=True):
    """The address to be scraped at."""

    port: Annotated[int, Meta(ge=1, le=65535, description="TCP port.")]
    host: Annotated[str, Meta(min_length=1, max_length=253, description="Address to listen at.")] = "127.0.0.1"

    @property
    def place(self) -> str:
        """``HOST:PORT``."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class ScrapeServer:
    """Listens while the broker runs. Events count as delivered at once: its end loses values that were not scraped."""

    def __init__(self, config: Listen, families: Families) -> None:
        self._config = config
        self._registry = families.registry()
        self._server: PageServer | None = None

    def open(self) -> None:
        """Listen.

        Raises:
            SinkError: the server can't listen at the address.
        """
        from balog.sinks.measuring.scrape_server import PageServer, metrics_answer

        if self._server is not None:
            return
        try:
            addresses = socket.getaddrinfo(self._config.host, self._config.port, type=socket.SOCK_STREAM)
            pages = dict.fromkeys(("/metrics", "/"), partial(metrics_answer, self._registry))
            self._server = PageServer(addresses[0][0], addresses[0][4], pages)
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise SinkError(f"cannot listen at {self._config.place}: {reason}") from None

    def publish(self) -> None:
        """Do nothing: a scrape reads the values."""

    def close(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.stop()
            self._server = None
