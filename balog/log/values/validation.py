"""Declare payload types, and validate payloads against them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from balog.common.errors import BalogError, ConfigError, split_refusal

Check = Callable[[bytes], str | None]
"""Checks an encoded payload; returns the problem and its path, or None."""

_checks: dict[str, Check] = {}


class PayloadError(BalogError):
    """A payload does not match its ``cls_type``; raised with ``configure(validate="raise")``."""


class _Head(msgspec.Struct):
    cls_type: Any = None


_QUOTED_VALUE = re.compile(r"(?<=value) .*", re.DOTALL)
"""The value in msgspec's errors about enumerations, which may be a secret."""

_head = msgspec.json.Decoder(_Head)
_encode = msgspec.json.Encoder().encode


def declare(type_or_name: Any, schema: Mapping[str, Any] | None = None) -> Any:
    """Declare a payload type, by a msgspec Struct or by a JSON Schema.

    ::

        @declare
        class Refund(msgspec.Struct, tag_field="cls_type", tag="refund"):
            amount: Decimal

        declare("refund", {"type": "object", "required": ["amount"]})

    Args:
        type_or_name: a Struct whose ``tag_field`` is ``cls_type``, or the name of the type.
        schema: the JSON Schema, with a name.

    Returns:
        ``type_or_name``, so that this serves as a decorator.

    Raises:
        ConfigError: the arguments are neither, the schema is invalid, or the name is already declared.
        MissingExtraError: the extra ``schema`` is not installed, for a JSON Schema.
    """
    if isinstance(type_or_name, str) and schema is not None:
        name, check = type_or_name, _by_schema(type_or_name, schema)
    elif isinstance(type_or_name, type) and issubclass(type_or_name, msgspec.Struct) and schema is None:
        name, check = _by_struct(type_or_name)
    else:
        raise ConfigError("declare takes a msgspec Struct, or a name and a JSON Schema")
    if name in _checks:
        raise ConfigError(f"payload type {name!r} is declared already")
    _checks[name] = check
    return type_or_name


def _by_struct(struct: type[msgspec.Struct]) -> tuple[str, Check]:
    info = struct.__struct_config__
    if info.tag_field != "cls_type" or not isinstance(info.tag, str):
        raise ConfigError(f"{struct.__qualname__} needs tag_field='cls_type' and a tag, the name of the type")
    decoder = msgspec.json.Decoder(struct)

    def check(payload: bytes) -> str | None:
        try:
            decoder.decode(payload)
        except msgspec.ValidationError as error:
            if error.__cause__ is not None:
                return f"its own check raised {type(error.__cause__).__name__}"
            reason, path = split_refusal(error)
            return f"{_QUOTED_VALUE.sub('', reason)} at {path}"
        return None

    return info.tag, check


def _by_schema(name: str, schema: Mapping[str, Any]) -> Check:
    from balog.registry.json_schema import JsonValidator

    validator = JsonValidator(schema, f"payload type {name!r}")

    def check(payload: bytes) -> str | None:
        faults = validator.check(payload)
        return f"{faults[0].reason} at {faults[0].path}" if faults else None

    return check


class DeclaredTypeValidator:
    """Validates payloads of declared types; others pass.

    Args:
        mode: ``tag`` reports errors in ``payload.problem``, ``raise`` raises them.
    """

    def __init__(self, mode: Literal["tag", "raise"]) -> None:
        self._raises = mode == "raise"

    def check(self, payload: bytes) -> bytes:
        """Return the payload to write.

        Raises:
            PayloadError: the payload is invalid, in mode ``raise``.
        """
        name = _head.decode(payload).cls_type
        check = _checks.get(name) if isinstance(name, str) else None
        if check is None:
            return payload
        problem = check(payload)
        if problem is None:
            return payload
        if self._raises:
            raise PayloadError(f"payload is no {name}: {problem}")
        data = msgspec.json.decode(payload)
        earlier = f"{data['problem']}; " if "problem" in data else ""
        return _encode({**data, "problem": f"{earlier}is no {name}: {problem}"})
