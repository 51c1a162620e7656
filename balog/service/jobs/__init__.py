"""The jobs that a service runs for its control document: filters, tables, callbacks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from balog.common.stats import Stats, counter, gauge
from balog.service.document import ControlDocument, LoadedTable

Kind = Literal["filter", "table", "callback"]


class JobStatus(Stats, kw_only=True):
    """The status of a job.

    ``lag`` is None if unknown. ``error`` is the current error in one line, "" if there is none.
    """

    component: ClassVar[str] = "job"
    name: str
    kind: Kind
    state: Literal["running", "stopped"]
    taken: Annotated[int, counter("Events that the job received.")] = 0
    done: Annotated[int, counter("Events that were written, posted or filtered out.")] = 0
    failed: Annotated[int, counter("Attempts that failed.")] = 0
    dead: Annotated[int, counter("Events that became dead letters.")] = 0
    lag: Annotated[int | None, gauge("Events that the job's group has not received yet.")] = None
    error: str = ""


def service_jobs(document: ControlDocument) -> Iterator[tuple[Kind, str, Any]]:
    """Yield the jobs that a service runs itself, without those that run with Spark: kind, path and config."""
    for number, part in enumerate(document.filters):
        if part.engine == "service":
            yield "filter", f"$.filters[{number}]", part
    for number, table in enumerate(document.tables):
        if not isinstance(table, LoadedTable):
            yield "table", f"$.tables[{number}]", table
    for number, callback in enumerate(document.callbacks):
        yield "callback", f"$.callbacks[{number}]", callback
