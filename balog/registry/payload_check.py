"""Validates payloads against the types that they declare."""

from __future__ import annotations

from typing import Any

import msgspec

from balog.registry.listing import UnknownTypeError, UnknownVersionError
from balog.registry.registry import Registry
from balog.registry.schema import SchemaViolation


class _Head(msgspec.Struct):
    cls_type: Any = None
    version: Any = None


_head = msgspec.json.Decoder(_Head)


class PayloadCheck:
    """Validates payloads, each against its ``cls_type`` and ``version``.

    Args:
        registry: the types. A payload without a version is validated against the latest version.
        type: the type of payloads that declare none. Payloads that declare another type are rejected.
        version: the version for all payloads, whatever they declare.
    """

    def __init__(self, registry: Registry, type: str | None = None, version: str | None = None) -> None:
        self._registry, self._type, self._version = registry, type, version

    def check(self, payload: bytes) -> list[SchemaViolation]:
        """Return every violation of a payload, which is a JSON object.

        Raises:
            InvalidSchemaError, MissingExtraError, StorageError: see ``Registry.validator``.
        """
        head = _head.decode(payload)
        name = self._type if head.cls_type is None else head.cls_type
        version = self._version if self._version is not None or head.version is None else head.version
        if name is None:
            return [SchemaViolation("$", "'cls_type' is missing")]
        if not isinstance(name, str) or (self._type is not None and name != self._type):
            return [
                SchemaViolation("$.cls_type", "expected string" if self._type is None else f"expected '{self._type}'")
            ]
        if version is not None and not isinstance(version, str):
            return [SchemaViolation("$.version", "expected string")]
        try:
            validator = self._registry.validator(name, version)
        except UnknownTypeError as error:
            return [SchemaViolation("$.cls_type", str(error))]
        except UnknownVersionError as error:
            return [SchemaViolation("$.version", str(error))]
        return validator.check(payload)
