"""A version of a type: its schema, its validator, and the violations of payloads."""

from __future__ import annotations

from typing import Literal, NamedTuple, Protocol

from msgspec import Struct

from balog.common.errors import ConfigError

Form = Literal["json", "protobuf"]
"""JSON Schema (draft 2020-12 unless ``$schema`` names another), or a ``.proto`` file."""

MAX_SCHEMA_BYTES = 4 << 20
"""A larger document is rejected without parsing it."""


MAX_SECONDS = 1.0
"""A payload whose validation could take longer is not valid."""

TOO_LONG = f"could take more than {MAX_SECONDS:g} s to be validated; send less, or simplify the schema"


class InvalidSchemaError(ConfigError):
    """A document is not a valid schema, or payloads cannot be validated against it in bounded time.

    ``source`` is the file or ``TYPE/VERSION``, ``path`` the place in it.
    """


class Schema(Struct, frozen=True):
    """One version of one type.

    Attributes:
        type: the payload's ``cls_type``.
        version: SemVer without build metadata, ``1.2.0``.
        form: the schema language.
        source: the document as it was registered.
        message: for protobuf, the full name of the payload's message; "" if the file has only one candidate, and for
            JSON Schema.
    """

    type: str
    version: str
    form: Form
    source: bytes
    message: str = ""


class SchemaViolation(NamedTuple):
    """An error in a payload: a JSONPath (``$.lines[2].price``) and a reason, which contains no value of the payload."""

    path: str
    reason: str


class PayloadValidator(Protocol):
    """Validates payloads against one version of one type. Thread-safe."""

    def check(self, payload: bytes) -> list[SchemaViolation]:
        """Return every violation of a JSON payload.

        A payload that could take more than 1 s is not checked, and has the violation ``TOO_LONG``.
        """

    def worst_seconds(self, payload: bytes) -> float:
        """Return an estimated upper bound of the time that ``check`` takes in this process, in seconds."""
