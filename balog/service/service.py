"""The event service: starts and stops its parts."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from balog.common.errors import BalogError, MissingExtraError, complain
from balog.common.signals import StopSignals, signals_for_main_thread
from balog.service.api.context import ServiceContext
from balog.service.api.listener import open_socket, url_of
from balog.service.server import ServiceServer
from balog.service.settings import ServiceConfig
from balog.service.validation import service_problems

_REFRESH_SECONDS = 5.0  # seconds between two looks at the registry


class Service(ServiceContext):
    """An event service in this process, with its event loop on a thread.

    ::

        with Service(ServiceConfig(topics="local:topics", listen=":0")) as service:
            print(service.url)

    Args:
        config: the config.
        say: prints one line for the operator.

    Attributes:
        url: the URL of the API.
        lost: the ids of events that no store took when the service stopped.

    Raises:
        ConfigError: the config has a problem that shows before anything runs.
        MissingExtraError: packages of the extra ``serve``, or of a configured part, are not installed.
    """

    def __init__(self, config: ServiceConfig, *, say: Callable[[str], None] = complain) -> None:
        try:
            import httptools  # noqa: F401
            import starlette  # noqa: F401
            import uvicorn  # noqa: F401
        except ImportError:
            raise MissingExtraError("an event service", "serve") from None
        for problem in service_problems(config):
            raise problem
        super().__init__(config, say)
        self.url = ""
        self.lost: list[str] = []
        self._server = ServiceServer(config, self.intake.start, self._refresh, self._drain)

    @property
    def is_serving(self) -> bool:
        """Whether requests are answered."""
        return self._server.is_serving

    def start(self) -> None:
        """Apply the newest document and listen. Return when requests are answered.

        Raises:
            BalogError: the address is not available, a store cannot be read, or another service uses the fallback.
        """
        from balog.service.api.app import Application

        listener: socket.socket | None = None
        try:
            listener = open_socket(self.config.listen)
            self.url = url_of(listener, is_tls=self.config.tls_cert is not None)
            if self._fallback is not None:
                self._fallback.claim()
            app = Application(self)
            with signals_for_main_thread():
                self.registry.refresh()
                self.applier.start()
                self._server.start(app, listener)
        except BaseException:
            if listener is not None:
                listener.close()
            self.stop()
            raise

    def stop(self) -> None:
        """Reject new events, store the accepted ones, and stop the jobs. Takes slightly more than ``drain`` seconds.

        Events that the topics do not store in time go to the fallback. ``lost`` holds the ids of events that no store
        took; their senders got no acknowledgement.
        """
        self.is_stopping = True
        self._server.request_stop()
        self.applier.stop()
        self._server.join()
        self.inspector.close()
        self.readers.close()
        self._closing.close()

    def __enter__(self) -> Service:
        self.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self.stop()

    def run(self, ready: Callable[[], object] = lambda: None) -> int:
        """Serve until SIGTERM or SIGINT, then stop. A second signal ends the process at once.

        Args:
            ready: called when requests are answered.

        Returns:
            The exit code: 0, or 1 if unacknowledged events could not be stored.
        """
        with StopSignals() as signals:
            with self:
                ready()
                while not signals.came() and self._server.is_alive:
                    self._server.join(0.2)
        if self._server.error is not None:
            raise BalogError(f"the service ended: {self._server.error}")
        return 1 if self.lost else 0

    async def _drain(self) -> None:
        self.is_stopping = True
        self.reader.stop()
        self.lost = await self.intake.stop(self.config.drain)

    async def _refresh(self) -> None:
        """Refresh the registry periodically."""
        reported = ""
        while True:
            await asyncio.sleep(_REFRESH_SECONDS)
            try:
                await self.readers.submit(self.registry.refresh).future
                reason = ""
            except Exception as error:  # if this loop ended, the registry would never be refreshed again
                reason = str(error) if isinstance(error, BalogError) else f"{type(error).__name__}"
                if reason != reported:
                    self.say(f"registry: {reason}; uses the schemas that are cached")
            reported = reason
            self.reader.forget()
