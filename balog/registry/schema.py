"""What a type's version is: its schema as it was written, and what a payload can have wrong."""

from __future__ import annotations

from typing import Literal, NamedTuple, Protocol

from msgspec import Struct

__all__ = ["Fault", "Form", "Schema", "Validator"]

Form = Literal["json", "protobuf"]
"""JSON Schema (draft 2020-12 where it does not say), or a ``.proto`` file."""


class Schema(Struct, frozen=True):
    """One version of one type.

    Attributes:
        type: the payload's ``cls_type``.
        version: SemVer without build metadata, ``1.2.0``.
        form: how it is written.
        source: the document as it was registered.
        message: of protobuf, the full name of the message that is the payload; "" for JSON Schema.
    """

    type: str
    version: str
    form: Form
    source: bytes
    message: str = ""


class Fault(NamedTuple):
    """What is wrong with a payload: where, as a JSONPath (``$.lines[2].price``), and what, never with a value in it."""

    path: str
    reason: str


class Validator(Protocol):
    """Tells whether payloads are of one version of one type; may be used from any thread."""

    def check(self, payload: bytes) -> list[Fault]:
        """Give every fault of a payload, which is JSON; none when it is valid."""
