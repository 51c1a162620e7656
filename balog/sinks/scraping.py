"""The scrape target of a Prometheus: GET /metrics of a small HTTP server, by default on loopback."""

from __future__ import annotations

import socket
import threading
import time
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from balog.sinks.base import SinkError
from balog.sinks.families import Families

if TYPE_CHECKING:
    from balog.sinks.scrape_server import PageAnswer, PageServer


class Listen(Struct, forbid_unknown_fields=True, kw_only=True):
    """The address to be scraped at."""

    port: Annotated[int, Meta(ge=1, le=65535, description="TCP port.")]
    host: Annotated[str, Meta(min_length=1, max_length=253, description="Address to listen at.")] = "127.0.0.1"
    linger: Annotated[
        float,
        Meta(ge=0, le=3600, description="Seconds at the end to wait for a last scrape, within the broker's drain."),
    ] = 0.0

    @property
    def place(self) -> str:
        """``HOST:PORT``."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class ScrapeServer:
    """Listens while the broker runs, and after its end until a scrape has seen all values, or for ``linger`` seconds.

    Events count as delivered at once: killing the broker loses values that were not scraped.
    """

    def __init__(self, config: Listen, families: Families) -> None:
        self._config = config
        self._registry = families.registry()
        self._server: PageServer | None = None
        self._published = 0
        self._seen = 0
        self._changed = threading.Condition()

    def open(self) -> None:
        """Listen.

        Raises:
            SinkError: the server can't listen at the address.
        """
        from balog.sinks.scrape_server import PageServer

        if self._server is not None:
            return
        try:
            found = socket.getaddrinfo(self._config.host, self._config.port, type=socket.SOCK_STREAM)
            pages = {"/metrics": self._answer, "/": self._answer}
            self._server = PageServer(found[0][0], found[0][4], pages)
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise SinkError(f"cannot listen at {self._config.place}: {reason}") from None

    def publish(self) -> None:
        """Note that there are new values."""
        with self._changed:
            self._published += 1

    def close(self) -> None:
        """Wait for a scrape of all values, and stop listening."""
        if self._server is None:
            return
        end = time.monotonic() + self._config.linger
        with self._changed:
            while self._seen < self._published and (left := end - time.monotonic()) > 0:
                self._changed.wait(left)
        self._server.stop()
        self._server = None

    def _answer(self, accept: str) -> PageAnswer:
        from balog.sinks.scrape_server import metrics_answer

        with self._changed:
            published = self._published
        return metrics_answer(self._registry, accept, lambda: self._was_seen(published))

    def _was_seen(self, published: int) -> None:
        with self._changed:
            self._seen = max(self._seen, published)
            self._changed.notify_all()
