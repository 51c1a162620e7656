"""The HTTP server of a service: uvicorn on a thread with an event loop of its own."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any

from balog.common.errors import BalogError
from balog.common.signals import join
from balog.service.settings import ServiceConfig

_CLOSE_SECONDS = 1.0  # for clients to receive their last answer


class ServiceServer:
    """Serves an ASGI application until it is stopped.

    Args:
        config: limits and TLS.
        on_start: called in the event loop before the first request is accepted.
        background: runs in the event loop while requests are accepted.
        on_stop: called in the event loop when no further connection is accepted; then the open ones are closed.

    Attributes:
        is_serving: whether requests are accepted.
        error: why the server ended by itself; None if it did not.
    """

    def __init__(
        self,
        config: ServiceConfig,
        on_start: Callable[[], Awaitable[None]],
        background: Callable[[], Coroutine[Any, Any, None]],
        on_stop: Callable[[], Awaitable[None]],
    ) -> None:
        self.is_serving = False
        self.error: BaseException | None = None
        self._config = config
        self._on_start, self._background, self._on_stop = on_start, background, on_stop
        self._started = threading.Event()
        self._is_stopping = False
        self._request_stop: Callable[[], object] = lambda: None
        self._thread: threading.Thread | None = None

    @property
    def is_alive(self) -> bool:
        """Whether the server's thread runs."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, app: Any, listener: socket.socket) -> None:
        """Start the thread, once, and return when requests are answered.

        Args:
            app: the application.
            listener: the socket; the server closes it.

        Raises:
            BalogError: the server cannot start.
        """
        self._thread = threading.Thread(target=self._run, args=(app, listener), name="balog serve", daemon=True)
        self._thread.start()
        self._started.wait()
        if self.error is not None:
            raise BalogError(f"the service did not start: {self.error}")

    def request_stop(self) -> None:
        """Ask the server to stop, from any thread, and return at once."""
        self._is_stopping = True
        self._request_stop()

    def join(self, timeout: float | None = None) -> None:
        """Wait until the thread has ended.

        Args:
            timeout: seconds; None waits until then, and lets signals through.
        """
        if self._thread is None or self._thread.ident is None:  # it may be that no thread could be started
            return
        if timeout is None:
            join(self._thread)
        else:
            self._thread.join(timeout)

    def _run(self, app: Any, listener: socket.socket) -> None:
        run: Callable[[Coroutine[Any, Any, None]], None] = asyncio.run
        with suppress(ImportError):
            import uvloop

            run = uvloop.run
        try:
            run(self._serve(app, listener))
        except BaseException as error:  # includes the SystemExit that uvicorn raises when it cannot start
            self.error = error
        finally:
            self.is_serving = False
            self._started.set()

    async def _serve(self, app: Any, listener: socket.socket) -> None:
        from uvicorn import Server

        loop = asyncio.get_running_loop()
        stop = asyncio.Event()
        await self._on_start()
        server = Server(_uvicorn_config(self._config, app))
        serving = loop.create_task(server.serve(sockets=[listener]))
        while not server.started and not serving.done():
            await asyncio.sleep(0.002)
        if not serving.done():
            self.is_serving = True
            self._request_stop = lambda: loop.is_closed() or loop.call_soon_threadsafe(stop.set)
            if self._is_stopping:
                stop.set()
            background = loop.create_task(self._background())
            self._started.set()
            waiting = loop.create_task(stop.wait())
            await asyncio.wait([waiting, serving], return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            background.cancel()
        server.should_exit = True
        await self._on_stop()
        await asyncio.wait([serving], timeout=_CLOSE_SECONDS)
        server.force_exit = True
        for connection in list(server.server_state.connections):
            connection.transport.abort()
        await serving


def _uvicorn_config(config: ServiceConfig, app: Any) -> Any:
    from uvicorn import Config

    from balog.service.api.protocol import make_protocol

    log = logging.getLogger("uvicorn.error")
    if not log.handlers:  # errors of a request are in its answer
        log.setLevel(logging.CRITICAL)
        logging.getLogger("uvicorn.asgi").setLevel(logging.CRITICAL)
    return Config(
        app,
        http=make_protocol(config.limits),
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=60,
        ssl_certfile=config.tls_cert,
        ssl_keyfile=config.tls_key,
    )
