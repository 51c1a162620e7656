"""The event service: assembles its parts, starts and stops them."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

from balog.common.errors import BalogError, MissingExtraError, complain
from balog.common.http.addresses import Networks
from balog.common.signals import StopSignals, signals_for_main_thread
from balog.common.stats import StatSample
from balog.consumers.monitoring.health import read_address
from balog.registry import may_be_folder
from balog.service.api.bodies import ByteBudget
from balog.service.api.failed_events import FailedEvents
from balog.service.api.item_reader import ItemReader
from balog.service.api.listener import open_socket, url_of
from balog.service.api.metrics import ServiceGauges, ServiceMetrics
from balog.service.api.tokens import Tokens
from balog.service.control.applier import Applier
from balog.service.control.folder import FolderControl, open_version_cache
from balog.service.control.inspector import TopicInspector
from balog.service.document import ControlDocument
from balog.service.intake.executor import DaemonExecutor
from balog.service.intake.fallback import open_fallback
from balog.service.intake.intake import EventIntake
from balog.service.jobs import JobStatus, Kind
from balog.service.jobs.access import document_problems, source_problems
from balog.service.jobs.engine_job import EngineJob
from balog.service.remote_registry import open_any_registry
from balog.service.server import ServiceServer
from balog.service.settings import ServiceConfig
from balog.service.validation import service_problems
from balog.topics import Topics, open_topics

_REFRESH_SECONDS = 5.0  # seconds between two looks at the registry
_READER_THREADS = 8  # threads that wait for the registry, or for a validation that takes long


class Service:
    """An event service in this process, with its event loop on a thread.

    ::

        with Service(ServiceConfig(topics="local:topics", listen=":0")) as service:
            print(service.url)

    Args:
        config: the config.
        topics: the topics, instead of those that ``config`` names; not closed by the service.
        say: prints one line for the operator.

    Attributes:
        readers: threads for events that wait for the registry, or whose validation may take long.
        started: the start time by the monotonic clock.

    Raises:
        ConfigError: the config has a problem that shows before anything runs.
        MissingExtraError: packages of the extra ``serve``, or of a configured part, are not installed.
    """

    def __init__(
        self, config: ServiceConfig, *, topics: Topics | None = None, say: Callable[[str], None] = complain
    ) -> None:
        try:
            import httptools  # noqa: F401
            import starlette  # noqa: F401
            import uvicorn  # noqa: F401
        except ImportError:
            raise MissingExtraError("an event service", "serve") from None
        for problem in service_problems(config):
            raise problem
        self.config = config
        port = read_address(config.listen)[1]  # two services on one machine report under different names
        self.name = config.name or (f"{socket.gethostname()}:{port}" if port else socket.gethostname())
        self.started = time.monotonic()
        self.is_stopping = False
        self._closing = ExitStack()
        with ExitStack() as stack:
            self.say = say
            self.tokens = Tokens(config.tokens, say) if config.tokens is not None else None
            if config.registry is not None and not may_be_folder(config.registry):
                say(f"registry: {config.registry}: no such folder yet; balog's own types are the only ones")
            self.registry = open_any_registry(config.registry, config.registry_options, max_age=float("inf"))
            stack.callback(self.registry.close)
            self.registry.is_shared = True
            self.topics = topics if topics is not None else stack.enter_context(open_topics(config.topics))
            # The inspector opens and closes all topics, so it has a backend of its own.
            inspected_topics = topics if topics is not None else stack.enter_context(open_topics(config.topics))
            self._fallback = open_fallback(config.fallback, config.topics) if config.fallback is not None else None
            if self._fallback is not None:
                stack.callback(self._fallback.close)
            self.control = FolderControl(config.control, config.control_options) if config.control is not None else None
            if self.control is not None:
                stack.callback(self.control.close)
            self.intake = EventIntake(
                self.topics,
                fallback=self._fallback,
                in_flight_bytes=config.limits.in_flight_bytes,
                notify=self.say,
            )
            self._closing = stack.pop_all()
        self.reader = ItemReader(self.registry, config)
        self.failed = FailedEvents(self.name)
        self.request_budget = ByteBudget(config.limits.in_flight_bytes)
        self.metrics = ServiceMetrics(self._samples)
        self.inspector = TopicInspector(inspected_topics)
        self.applier = self._make_applier()
        self.readers = DaemonExecutor(_READER_THREADS, "reading")
        self.url = ""
        self.lost: list[str] = []
        self._server: ServiceServer | None = None

    def _make_applier(self) -> Applier:
        config = self.config
        return Applier(
            self.control,
            self.name,
            make_job=self._make_job,
            apply=self.intake.apply,
            check=lambda document: [
                *document_problems(document, config.document_access),
                *source_problems(document, self.topics),
            ],
            say=self.say,
            drain=config.drain,
            cache=open_version_cache(config.control, config.fallback, config.topics)
            if config.control is not None
            else None,
        )

    def _make_job(self, kind: Kind, part: Any) -> EngineJob:
        config, networks = self.config, Networks(self.config.document_access.networks)
        # Imported here: a service without callbacks does not need their packages.
        if kind == "filter":
            from balog.service.jobs.filters import FilterJob

            return FilterJob(part, config.topics, self.say)
        if kind == "table":
            from balog.service.jobs.tables import TableJob

            return TableJob(part, config.topics, self.say, config.registry, config.registry_options, networks)
        from balog.service.jobs.callbacks import CallbackJob

        return CallbackJob(part, config.topics, self.say, networks)

    @property
    def document(self) -> ControlDocument:
        """The applied document."""
        return self.applier.document

    @property
    def jobs(self) -> list[JobStatus]:
        """The status of the document's jobs."""
        return self.applier.jobs.statuses()

    @property
    def is_ready(self) -> bool:
        """Whether events of at least one topic are accepted."""
        return self._loop is not None and not self.is_stopping and self.intake.accepts_events

    @property
    def _loop(self) -> asyncio.AbstractEventLoop | None:
        return self._server.loop if self._server is not None else None

    def problems(self) -> list[str]:
        """Return why events are not accepted now, one line each."""
        if self._loop is None or self.is_stopping:
            return ["the service is stopping" if self.is_stopping else "the service has not started"]
        return [self.intake.error] if self.intake.error else []

    # -- life cycle -------------------------------------------------------------------------------------------------

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
                self._server = ServiceServer(
                    self.config,
                    app,
                    listener,
                    on_start=self.intake.start,
                    background=self._refresh,
                    on_stop=self._drain,
                )
                self._server.start()
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
        if self._server is not None:
            self._server.request_stop()
        self.applier.stop()
        if self._server is not None:
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
                while not signals.came() and self._server is not None and self._server.is_alive:
                    self._server.join(0.2)
        if self._server is not None and self._server.error is not None:
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

    # -- callbacks of the parts -------------------------------------------------------------------------------------

    def _samples(self) -> Iterator[StatSample]:
        """Yield the gauges of the service and the numbers of its jobs."""
        state = self.intake.state()
        yield from ServiceGauges(
            in_flight=state.in_flight,
            in_flight_bytes=state.in_flight_bytes,
            request_bytes=self.request_budget.used,
            fallback_backlog=state.backlog,
            ready=self.is_ready,
            uptime_seconds=time.monotonic() - self.started,
        ).samples()
        for job in self.jobs:
            yield from job.samples({"kind": job.kind, "job": job.name})
