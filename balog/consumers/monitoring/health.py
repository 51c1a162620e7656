"""An HTTP server that reports on an engine: /metrics, /health and /ready."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from balog.common.errors import BalogError, ConfigError
from balog.common.signals import signals_for_main_thread
from balog.consumers.engine import Engine
from balog.consumers.hooks import Hook
from balog.consumers.monitoring.metrics_hook import MetricsHook

if TYPE_CHECKING:
    from balog.sinks.measuring.scrape_server import PageAnswer, PageServer

STALE = 30.0
"""Seconds without a turn of its main loop after which an engine counts as dead; it turns every second."""

_LOOPBACK = "127.0.0.1"
_FORMS = "HOST:PORT, :PORT for this machine alone, or 0.0.0.0:PORT for all addresses"


class HealthServer(Hook):
    """A small HTTP server for an engine. Pass its ``hooks`` to the engine, and use it as a context around the run.

    ::

        with HealthServer("0.0.0.0:9464") as server:
            Engine(hub, topics, hooks=server.hooks).run()

    - ``/metrics`` has the metrics of :class:`MetricsHook`.
    - ``/health`` is 200 while the engine's main loop turns. Restart the process when it is not.
    - ``/ready`` is 200 while the engine runs, its topics answer, it does not drain, and fewer handlers hang than would
      end it.

    Otherwise ``/health`` and ``/ready`` answer 503 with the problems as JSON.

    Args:
        listen: ``HOST:PORT``, or ``:PORT`` on loopback.
        metrics: the metrics to serve; new ones when omitted.

    Raises:
        ConfigError: an invalid address.
        MissingExtraError: prometheus-client is not installed.
    """

    def __init__(self, listen: str, metrics: MetricsHook | None = None) -> None:
        self.listen = listen
        self.metrics = metrics if metrics is not None else MetricsHook()
        self._address = read_address(listen)
        self._registry = self.metrics.registry()
        self._engine: Engine | None = None
        self._is_over = False
        self._server: PageServer | None = None
        self._lock = threading.Lock()

    @property
    def hooks(self) -> tuple[Hook, ...]:
        """The hooks to pass to the engine."""
        return (self.metrics, self)

    def started(self, engine: Engine) -> None:
        """Report on this run from now on."""
        self._engine, self._is_over = engine, False

    def stopped(self, engine: Engine) -> None:
        """Report the end of the run."""
        self._is_over = True

    # -- serving ------------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Start the server.

        Raises:
            BalogError: the address is not available.
        """
        from balog.sinks.measuring.scrape_server import PageServer, metrics_answer

        with self._lock:
            if self._server is not None:
                return
            pages: dict[str, Callable[[str], PageAnswer]] = {
                "/metrics": lambda accept: metrics_answer(self._registry, accept),
                "/health": lambda accept: self._answer("alive", self.health()),
                "/ready": lambda accept: self._answer("ready", self.readiness()),
            }
            try:
                family, *_, address = socket.getaddrinfo(*self._address, type=socket.SOCK_STREAM)[0]
                with signals_for_main_thread():
                    self._server = PageServer(family, address, pages)
            except (OSError, UnicodeError) as error:
                reason = getattr(error, "strerror", None) or error
                raise BalogError(f"cannot listen at {self.listen}: {reason}") from None

    def close(self) -> None:
        """Stop the server."""
        with self._lock:
            server, self._server = self._server, None
            if server is not None:
                server.stop()

    def __enter__(self) -> HealthServer:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def port(self) -> int:
        """The TCP port, also the assigned one if the address has port 0."""
        return int((self._server.server_address if self._server is not None else self._address)[1])

    # -- what is asked ------------------------------------------------------------------------------------------------

    def health(self) -> list[str]:
        """Return the problems that only a restart solves; none before the engine's first run."""
        if self._engine is None:
            return []
        if self._is_over:
            return ["the engine has ended"]
        state = self._engine.state
        silent = time.monotonic() - state.alive
        if state.running and silent > STALE:
            return [f"the engine's main loop has not turned for {silent:.0f} seconds"]
        return []

    def readiness(self) -> list[str]:
        """Return the problems that keep the engine from handling events now."""
        state = self._engine.state if self._engine is not None and not self._is_over else None
        if state is None or not state.running:
            return ["the engine is not running"]
        problems = self.health()
        if state.draining:
            problems.append("the engine stops and waits for the messages in flight")
        if state.hung >= max(1, state.hung_limit):
            problems.append(f"{state.hung} handlers took longer than their timeout and have not come back")
        return problems + [error for _, error in sorted(state.errors.items()) if error]

    def _answer(self, word: str, problems: list[str]) -> PageAnswer:
        from balog.sinks.measuring.scrape_server import PageAnswer

        content: dict[str, Any] = {"status": f"not {word}" if problems else word, "problems": problems}
        if self._engine is not None:
            state = self._engine.state
            content |= {"in_flight": state.in_flight, "calls": state.calls, "hung": state.hung}
        return PageAnswer("application/json", msgspec.json.encode(content) + b"\n", status=503 if problems else 200)


def read_address(listen: str) -> tuple[str, int]:
    """Parse an address to listen at and return its host and port.

    Raises:
        ConfigError: an invalid address.
    """
    host, colon, port = listen.rpartition(":")
    if not (colon and port.isascii() and port.isdigit() and int(port) <= 65535) or (":" in host and host[0] != "["):
        raise ConfigError(f"cannot listen at {listen!r:.200}: expected {_FORMS}")
    return host.strip("[]") or _LOOPBACK, int(port)
