"""Creates the job for a part of the control document."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from balog.common.http.addresses import Networks
from balog.service.jobs import Kind
from balog.service.jobs.engine_job import EngineJob
from balog.service.settings import ServiceConfig


def job_factory(config: ServiceConfig, say: Callable[[str], None]) -> Callable[[Kind, Any], EngineJob]:
    """Return a function that creates the jobs of a service.

    Args:
        say: prints one line for the operator.
    """
    networks = Networks(config.document_access.networks)

    def make(kind: Kind, part: Any) -> EngineJob:
        # Imported here: a service without callbacks does not need their packages.
        if kind == "filter":
            from balog.service.jobs.filters import FilterJob

            return FilterJob(part, config.topics, say)
        if kind == "table":
            from balog.service.jobs.tables import TableJob

            return TableJob(part, config.topics, say, config.registry, config.registry_options, networks)
        from balog.service.jobs.callbacks import CallbackJob

        return CallbackJob(part, config.topics, say, networks)

    return make
