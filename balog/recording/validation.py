"""Payload types that an application declares, and whether a payload is what its ``cls_type`` says."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from balog.errors import BalogError, ConfigError, split_refusal

__all__ = ["PayloadError", "Validator", "declare", "declared", "forget"]

Check = Callable[[bytes], str | None]
"""Takes an encoded payload; gives what is wrong with it and where, or None."""

_checks: dict[str, Check] = {}


class PayloadError(BalogError):
    """A payload is not what its ``cls_type`` says; ``configure(validate="raise")`` asked to be told."""


class _Head(msgspec.Struct):
    cls_type: Any = None


_QUOTED_VALUE = re.compile(r"(?<=value) .*", re.DOTALL)
"""What msgspec says of a value that is none of a few: it may be a secret."""

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
        schema: with a name, its JSON Schema.

    Returns:
        What was given, so that it serves as a decorator.

    Raises:
        ConfigError: neither of the two, a schema that is none, or a name that is declared already by another.
        MissingExtraError: a JSON Schema without the extra ``schema``.
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


def declared() -> list[str]:
    """List the names that are declared, sorted."""
    return sorted(_checks)


def forget(name: str) -> None:
    """Take a declaration back; for tests."""
    _checks.pop(name, None)


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


class Validator:
    """Checks payloads of declared types; others pass.

    Args:
        mode: ``tag`` says in ``payload.problem`` what is wrong, ``raise`` raises it.
    """

    def __init__(self, mode: Literal["tag", "raise"]) -> None:
        self._raises = mode == "raise"

    def check(self, payload: bytes) -> bytes:
        """Give the payload to write.

        Raises:
            PayloadError: it is not what it says, in mode ``raise``.
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
