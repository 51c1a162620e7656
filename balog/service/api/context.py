"""The part of a service that the HTTP API uses."""

from __future__ import annotations

from typing import Protocol

from balog.registry import Registry
from balog.service.api.bodies import ByteBudget
from balog.service.api.failed_events import FailedEvents
from balog.service.api.item_reader import ItemReader
from balog.service.api.metrics import ServiceMetrics
from balog.service.api.tokens import Tokens
from balog.service.control.applier import Applier
from balog.service.control.folder import FolderControl
from balog.service.control.inspector import TopicInspector
from balog.service.intake.executor import DaemonExecutor
from balog.service.intake.intake import EventIntake
from balog.service.settings import ServiceConfig


class ServiceContext(Protocol):
    """The service behind the API; ``balog.service.service.Service`` is one.

    Attributes:
        control: the versions of the control document; None if the config names no version store.
        tokens: None if the service has no tokens; then only this machine can connect.
        readers: threads for events that wait for the registry, or whose validation may take long.
        request_budget: bytes of all requests in memory.
        started: when the service started, by the monotonic clock.
    """

    config: ServiceConfig
    registry: Registry
    control: FolderControl | None
    tokens: Tokens | None
    intake: EventIntake
    reader: ItemReader
    readers: DaemonExecutor
    failed: FailedEvents
    metrics: ServiceMetrics
    inspector: TopicInspector
    applier: Applier
    request_budget: ByteBudget
    started: float
    is_stopping: bool

    @property
    def is_ready(self) -> bool:
        """Whether the service accepts events of at least one topic."""

    def problems(self) -> list[str]:
        """Return why the service does not accept events now, one line each."""

    def say(self, line: str) -> None:
        """Print one line for the operator."""
