"""The parts of a service, which its HTTP API uses."""

from __future__ import annotations

import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

from balog.common.http.addresses import Networks
from balog.common.stats import StatSample
from balog.consumers.monitoring.health import read_address
from balog.registry import may_be_folder
from balog.service.api.bodies import ByteBudget
from balog.service.api.failed_events import FailedEvents
from balog.service.api.item_reader import ItemReader
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
from balog.service.settings import ServiceConfig
from balog.topics import open_topics

_READER_THREADS = 8  # threads that wait for the registry, or for a validation that takes long


class ServiceContext(ABC):
    """A service without its server; see ``balog.service.service.Service``.

    Args:
        config: a config without problems.
        say: prints one line for the operator.

    Attributes:
        control: the versions of the control document; None if the config names no version store.
        tokens: None if the service has no tokens; then only this machine can connect.
        readers: threads for events that wait for the registry, or whose validation may take long.
        request_budget: bytes of all requests in memory.
        started: the start time by the monotonic clock.
    """

    def __init__(self, config: ServiceConfig, say: Callable[[str], None]) -> None:
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
            self.topics = stack.enter_context(open_topics(config.topics))
            # The inspector opens and closes all topics, so it has a backend of its own.
            inspected_topics = stack.enter_context(open_topics(config.topics))
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
    @abstractmethod
    def is_serving(self) -> bool:
        """Whether requests are answered."""

    @property
    def is_ready(self) -> bool:
        """Whether events of at least one topic are accepted."""
        return self.is_serving and not self.is_stopping and self.intake.accepts_events

    def problems(self) -> list[str]:
        """Return why events are not accepted now, one line each."""
        if not self.is_serving or self.is_stopping:
            return ["the service is stopping" if self.is_stopping else "the service has not started"]
        return [self.intake.error] if self.intake.error else []

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
