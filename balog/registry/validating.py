"""Payloads held against the types that they say they are of."""

from __future__ import annotations

from typing import Any

import msgspec

from balog.registry.json_schema import JsonValidator
from balog.registry.registry import Registry, UnknownTypeError, UnknownVersionError
from balog.registry.schema import Fault, Validator

__all__ = ["PayloadCheck"]


class _Head(msgspec.Struct):
    cls_type: Any = None
    version: Any = None


_head = msgspec.json.Decoder(_Head)


class PayloadCheck:
    """Finds what is wrong with payloads, each by its ``cls_type`` and ``version``.

    Args:
        registry: what the types are; of a payload without a version, the latest one.
        type: of payloads that do not say theirs; others must be of it, too.
        version: of all payloads, whatever they say.
        validator: of all payloads, whatever they say.
        reference: ask jsonschema, too; where it disagrees with jsonschema-rs on a payload, that is a fault.
    """

    def __init__(
        self,
        registry: Registry,
        type: str | None = None,
        version: str | None = None,
        validator: Validator | None = None,
        reference: bool = False,
    ) -> None:
        self._reference = reference
        self._registry, self._type, self._version, self._validator = registry, type, version, validator

    def check(self, payload: bytes) -> list[Fault]:
        """Give every fault of a payload, which is a JSON object.

        Raises:
            SchemaError, MissingExtraError, StorageError: as ``Registry.validator``.
        """
        if self._validator is not None:
            return self._judged(self._validator, payload)
        head = _head.decode(payload)
        name = self._type if head.cls_type is None else head.cls_type
        version = self._version if self._version is not None or head.version is None else head.version
        if name is None:
            return [Fault("$", "'cls_type' is missing")]
        if not isinstance(name, str) or (self._type is not None and name != self._type):
            return [Fault("$.cls_type", f"want '{self._type}'" if self._type is not None else "want string")]
        if version is not None and not isinstance(version, str):
            return [Fault("$.version", "want string")]
        try:
            validator = self._registry.validator(name, version)
        except UnknownTypeError as error:
            return [Fault("$.cls_type", str(error))]
        except UnknownVersionError as error:
            return [Fault("$.version", str(error))]
        return self._judged(validator, payload)

    def _judged(self, validator: Validator, payload: bytes) -> list[Fault]:
        found = validator.check(payload)
        if self._reference and isinstance(validator, JsonValidator) and (said := validator.disagreement(payload)):
            found.append(Fault("$", said))
        return found
