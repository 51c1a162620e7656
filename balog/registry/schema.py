"""What a type's version is: its schema as it was written, and what a payload can have wrong."""

from __future__ import annotations

from typing import Literal, NamedTuple, Protocol

from msgspec import Struct

from balog.errors import ConfigError

__all__ = ["MAX_SCHEMA_BYTES", "Form", "InvalidSchemaError", "PayloadValidator", "Schema", "SchemaViolation"]

Form = Literal["json", "protobuf"]
"""JSON Schema (draft 2020-12 where it does not say), or a ``.proto`` file."""

MAX_SCHEMA_BYTES = 4 << 20
"""A larger document is refused unread."""


class InvalidSchemaError(ConfigError):
    """A document that should have been a schema is none, or one that payloads cannot be held against in bounded time.

    ``source`` is the file or ``TYPE/VERSION``, ``path`` the place in it.
    """


class Schema(Struct, frozen=True):
    """One version of one type.

    Attributes:
        type: the payload's ``cls_type``.
        version: SemVer without build metadata, ``1.2.0``.
        form: how it is written.
        source: the document as it was registered.
        message: of protobuf, the full name of the message that is the payload; "" where the file says it by itself, and
            for JSON Schema.
    """

    type: str
    version: str
    form: Form
    source: bytes
    message: str = ""


class SchemaViolation(NamedTuple):
    """What is wrong with a payload: where, as a JSONPath (``$.lines[2].price``), and what, never with a value in it."""

    path: str
    reason: str


class PayloadValidator(Protocol):
    """Tells whether payloads are of one version of one type; may be used from any thread."""

    def check(self, payload: bytes) -> list[SchemaViolation]:
        """Return every fault of a payload, which is JSON; none when it is valid.

        A payload that may take long is checked in a child process, for at most 1 s of processor time. One that takes
        longer has the fault ``TOO_LONG``.

        Raises:
            WorkBusyError: no child process is free; the same may work later.
        """

    def worst_seconds(self, payload: bytes) -> float:
        """Return an upper bound, estimated, of the seconds that ``check`` takes where it runs in this process."""
