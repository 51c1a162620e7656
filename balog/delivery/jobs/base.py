"""What runs inside a service because the document says so: filters, tables, callbacks; one small interface."""

from __future__ import annotations

from typing import Literal, Protocol

from msgspec import Struct

__all__ = ["Job", "JobStatus", "Kind"]

Kind = Literal["filter", "table", "callback"]


class JobStatus(Struct, frozen=True, kw_only=True, rename={"error": "trouble"}):
    """How a job is, now.

    ``taken`` counts the events that it received, ``done`` those that it finished (written, posted, or not wanted),
    ``failed`` the failed attempts, ``dead`` the dead letters. ``lag`` is what its group has not received yet, None
    where that is not known. ``error`` is one line on what is wrong now, "" when nothing is.
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
    """A filter, a table or a callback at work. What it has in hand when it is stopped is handed out again."""

    name: str
    kind: Kind

    def check(self) -> None:
        """See whether it could begin here, and begin nothing.

        Raises:
            ConfigError: something that only shows now, such as a secret that is not there.
        """

    def start(self) -> None:
        """Begin, on threads of its own.

        Raises:
            ConfigError: see ``check``.
        """

    def stop(self, deadline: float) -> None:
        """Begin nothing more, wait at most ``deadline`` seconds for what is in hand, give the rest back."""

    def status(self) -> JobStatus:
        """Tell how it is. Cheap: asked every second."""
