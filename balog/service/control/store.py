"""The version store: a log of numbered versions, each of which refers to a document by its hash."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any, Literal

import msgspec
from msgspec import Struct

from balog.common.errors import BalogError
from balog.service.jobs import JobStatus

Action = Literal["push", "rollback"]
State = Literal["applied", "refused", "stopped"]


class ControlError(BalogError):
    """A version does not exist, or the version store is damaged."""


class VersionConflict(ControlError):
    """Another version was pushed meanwhile. Compare with it before pushing again.

    Attributes:
        head: the newest number.
        base: the number that the author expected to be the newest.
    """

    def __init__(self, head: int, base: int) -> None:
        super().__init__(
            f"version {head} was pushed meanwhile; see `balog config diff {base} {head}`, then push with --base {head}"
        )
        self.head = head
        self.base = base


class DocumentVersion(Struct, frozen=True, kw_only=True, rename={"origin": "from"}):
    """One version of the control document: author, time, reason and document.

    Attributes:
        number: from 1, without gaps.
        sha: SHA-256 of the document's canonical JSON, in hex.
        origin: for a rollback, the version whose document is restored.
        nonce: distinguishes two writers of one number.
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
    """The state of a version on the service that received it; see ``ServiceStatus``."""

    number: int
    state: State
    reason: str


class Pushed(DocumentVersion, frozen=True, kw_only=True):
    """A version that was pushed through a service's API, and its state on that service."""

    applied: Applied


class ServiceStatus(Struct, frozen=True, kw_only=True):
    """The periodic report of a service.

    Attributes:
        number: the applied version; 0 is the empty document.
        state: ``refused`` if ``head`` could not be applied, for ``reason``; then ``number`` is an older version.
        when: time of this report.
        every: seconds between two reports; a service without reports for much longer is down.
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
    jobs: list[JobStatus] = []


def canonical(data: bytes) -> bytes:
    """Return the canonical form of a JSON document: sorted keys, no spaces, no added defaults.

    Raises:
        msgspec.DecodeError: the document is not JSON.
    """
    document: Any = msgspec.json.decode(data)
    return msgspec.json.encode(document, order="sorted")


def sha_of(data: bytes) -> str:
    """Return the hash that names a canonical document."""
    return hashlib.sha256(data).hexdigest()
