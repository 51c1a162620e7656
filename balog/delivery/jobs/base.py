"""The interface of jobs: filters, tables and callbacks."""

from __future__ import annotations

from typing import Literal, Protocol

from msgspec import Struct

__all__ = ["Job", "JobStatus", "Kind"]

Kind = Literal["filter", "table", "callback"]


class JobStatus(Struct, frozen=True, kw_only=True, rename={"error": "trouble"}):
    """The status of a job.

    ``taken`` counts received events, ``done`` finished ones (written, posted, or filtered out), ``failed`` failed
    attempts, ``dead`` dead letters. ``lag`` is the number of events that its group has not received yet; None if
    unknown. ``error`` is the current error in one line, "" if there is none.
    """

    name: str
    kind: Kind
    state: Literal["running", "stopped", "disabled"]
    taken: int = 0
    done: int = 0
    failed: int = 0
    dead: int = 0
    lag: int | None = None
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
