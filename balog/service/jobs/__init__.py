"""The jobs that a service runs for its control document: filters, tables, callbacks."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Protocol

from balog.common.stats import Stats, counter, gauge

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


class Job(Protocol):
    """A running filter, table or callback. Events in flight when it stops are delivered again."""

    name: str
    kind: Kind

    def check(self) -> None:
        """Check whether the job can start on this machine, without starting it.

        Raises:
            ConfigError: a problem of this machine, such as a missing secret.
        """

    def start(self) -> None:
        """Start the job on threads of its own.

        Raises:
            ConfigError: see ``check``.
        """

    def stop(self, deadline: float) -> None:
        """Stop receiving, wait at most ``deadline`` seconds for events in flight, and release the rest."""

    def status(self) -> JobStatus:
        """Return the status. Called every second, so it must be cheap."""
