"""The status of a service, for ``GET /v1/status`` and the page."""

from __future__ import annotations

import threading
import time

from msgspec import Struct

from balog.delivery.api.context import ServiceContext
from balog.delivery.control.inspector import TopicView
from balog.delivery.control.store import Control, DocumentVersion, ServiceStatus
from balog.delivery.durable.intake import IntakeState
from balog.delivery.jobs import JobStatus
from balog.errors import BalogError

__all__ = ["EventCount", "StatusReport", "StatusReporter"]

_ENTRIES = 10
_REFRESH_SECONDS = 2.0  # seconds


class EventCount(Struct, frozen=True):
    """The number of events of a stream by status and, for 202, by store, since the service started."""

    stream: str
    status: str
    store: str
    count: int


class StatusReport(
    Struct,
    frozen=True,
    kw_only=True,
    rename={"topics_error": "topics_trouble", "control_error": "control_trouble"},
):
    """The status report. Counters start at 0 with the service; two reports give rates.

    Attributes:
        service: name of the service; ``uptime`` in seconds; ``time`` in seconds since the epoch.
        events: the outcomes of events.
        intake: the state of the intake.
        topics: those of the home, as they were a moment ago; ``topics_error`` when they can't be listed.
        document: the applied version and its state; None without a version store.
        services: the last report of every service with the same version store.
        history: the newest versions, in descending order.
        control_trouble: why versions can't be read, "" when they can.
    """

    service: str
    uptime: float
    time: float
    events: list[EventCount]
    intake: IntakeState
    topics: list[TopicView]
    topics_error: str
    jobs: list[JobStatus]
    document: ServiceStatus | None
    services: list[ServiceStatus]
    history: list[DocumentVersion]
    control_error: str


class StatusReporter:
    """Collects the status of a service. Thread-safe. The version store is read every two seconds at most."""

    def __init__(self, service: ServiceContext) -> None:
        self._service = service
        self._lock = threading.Lock()
        self._refreshed = float("-inf")
        self._services: list[ServiceStatus] = []
        self._history: list[DocumentVersion] = []
        self._error = ""

    def status(self) -> StatusReport:
        """Collect the report; this may read from the version store."""
        service = self._service
        if service.control is not None:
            self._refresh(service.control)
        own = service.applier.status()
        outcomes = sorted(service.metrics.outcomes().items())
        return StatusReport(
            service=service.applier.service,
            uptime=round(time.monotonic() - service.started, 3),
            time=time.time(),
            events=[EventCount(stream, status, store, count) for (stream, status, store), count in outcomes],
            intake=service.intake.state(),
            topics=service.inspector.topics(),
            topics_error=service.inspector.error,
            jobs=own.jobs,
            document=own if service.control is not None else None,
            services=self._services,
            history=self._history,
            control_error=self._error,
        )

    def _refresh(self, control: Control) -> None:
        if time.monotonic() - self._refreshed < _REFRESH_SECONDS or not self._lock.acquire(blocking=False):
            return  # while one thread waits for a slow store, the others use the last result
        try:
            self._services, self._history = control.services(), control.entries(_ENTRIES)
            self._error = ""
        except BalogError as error:
            self._error = str(error)
        finally:
            self._refreshed = time.monotonic()
            self._lock.release()
