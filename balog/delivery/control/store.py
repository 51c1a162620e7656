"""What a place of versions is: a log of numbered entries, each naming a document by its content."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any, Literal, Protocol

import msgspec
from msgspec import Struct

from balog.delivery.jobs import JobStatus
from balog.errors import BalogError

__all__ = [
    "Action",
    "Applied",
    "Control",
    "ControlError",
    "DocumentVersion",
    "Pushed",
    "ServiceStatus",
    "State",
    "VersionConflict",
    "canonical",
    "sha_of",
]

Action = Literal["push", "rollback", "automatic rollback"]
State = Literal["applied", "refused", "rolled back", "stopped"]


class ControlError(BalogError):
    """A version that is not there, or a place of versions that is broken."""


class VersionConflict(ControlError):
    """Somebody else took the number; whoever pushes looks at what they pushed first.

    Attributes:
        head: the number that is the newest now.
        base: the one that was thought to be.
    """

    def __init__(self, head: int, base: int) -> None:
        super().__init__(
            f"somebody pushed version {head} meanwhile; see `balog config diff {base} {head}`, "
            f"then push with --base {head}"
        )
        self.head = head
        self.base = base


class DocumentVersion(Struct, frozen=True, kw_only=True, rename={"origin": "from"}):
    """One version: who made which document the one that counts, when, and why.

    Attributes:
        number: from 1, without gaps.
        sha: SHA-256 of the document's canonical JSON, in hex.
        origin: of a rollback, the version whose document it is again.
        nonce: tells two writers of one number apart.
    """

    number: int
    sha: str
    who: str
    when: datetime
    message: str
    action: Action
    origin: int | None = None
    nonce: str = ""


class Applied(Struct, frozen=True, kw_only=True):
    """How the service that took a version fares with it: see ``ServiceStatus``."""

    number: int
    state: State
    reason: str


class Pushed(DocumentVersion, frozen=True, kw_only=True):
    """A version that a service's API took, and how that service fares with it."""

    applied: Applied


class ServiceStatus(Struct, frozen=True, kw_only=True):
    """What a service says about itself, again and again.

    Attributes:
        number: the version that it applied; 0 is the empty document, before any.
        state: ``refused`` when it could not apply ``head``, for ``reason``; ``number`` is then an older one.
        when: of this report.
        every: seconds until the next one at most; a service that is silent for long is in trouble.
        rate, errors: of the last minute, events a second that came in, and the share of them that failed.
    """

    service: str
    number: int
    sha: str
    head: int
    state: State
    reason: str
    when: datetime
    applied: datetime | None
    every: float
    rate: float = 0.0
    errors: float = 0.0
    jobs: list[JobStatus] = []


class Control(Protocol):
    """Versions of the document, in a folder, an object store, or behind a service's API. May be used by any thread.

    Every method raises ``StorageError``, ``SinkError`` or ``ControlError`` when the place can't be reached or refuses.

    Attributes:
        place: where it is, for people.
    """

    place: str

    def head(self) -> DocumentVersion | None:
        """Return the newest entry; None before the first."""

    def entry(self, number: int) -> DocumentVersion:
        """Return one entry.

        Raises:
            ControlError: there is none of that number.
        """

    def entries(self, limit: int = 100) -> list[DocumentVersion]:
        """Return entries, the newest first."""

    def document(self, entry: DocumentVersion) -> bytes:
        """Return an entry's document, canonical.

        Raises:
            ControlError: it is not there, or not what the entry says.
        """

    def push(self, data: bytes, *, who: str, message: str, base: int | None = None) -> DocumentVersion:
        """Make a document the one that counts. The same document as now is no new version.

        Args:
            data: JSON; it is not checked here, see ``check``.
            base: the number that the pusher knew as the newest; the newest as of now when None.

        Raises:
            VersionConflict: another number is the newest.
        """

    def rollback(
        self, number: int | None = None, *, who: str, message: str, base: int | None = None
    ) -> DocumentVersion:
        """Make an older version's document count again, as a new entry.

        Args:
            number: which, 0 for the empty document; when None, the last one before that has another document.

        Raises:
            ControlError: there is none.
            VersionConflict: see ``push``.
        """

    def services(self) -> list[ServiceStatus]:
        """Return what each service reported last, of the last day, by name."""

    def forget(self, service: str) -> None:
        """Drop what a service reported, as it is gone for good; one that lives reports again.

        Raises:
            ControlError: none of that name has reported.
        """

    def close(self) -> None:
        """Close connections, if there are any."""


def canonical(data: bytes) -> bytes:
    """Return a JSON document's canonical form: sorted keys, no spaces. Defaults that are not written stay so.

    Raises:
        msgspec.DecodeError: it is not JSON.
    """
    document: Any = msgspec.json.decode(data)
    return msgspec.json.encode(document, order="sorted")


def sha_of(data: bytes) -> str:
    """Return the name of a canonical document."""
    return hashlib.sha256(data).hexdigest()
