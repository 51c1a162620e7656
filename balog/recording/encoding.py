"""Encode the arguments of a logging call as the JSON parts of an event."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec

from balog.duplicate_keys import has_duplicate_key, unused_key
from balog.event import MAX_CHANNEL_LENGTH
from balog.payload import log_payload
from balog.recording import exceptions
from balog.recording.fallback_encoding import make_encodable
from balog.recording.json_values import (
    MAX_BYTES,
    MAX_LEVELS,
    NO_NUMBER,
    SAME_KEYS,
    clean_text,
    holds_no_number,
    is_deeper_than,
    may_write_a_key_twice,
    safe_str,
    to_data,
)

_BRACE, _NEWLINE = b"{\n"
_NO_OBJECT = "a payload is an object; this one was not"


_encode = msgspec.json.Encoder(enc_hook=to_data).encode
_decode = msgspec.json.decode


def encode_channel(name: str) -> bytes:
    """Encode any name as the JSON string of a channel, cut to a channel's length."""
    return _encode(clean_text(name[:MAX_CHANNEL_LENGTH]) or "unnamed")


def message_text(event: Any, args: tuple[Any, ...]) -> str:
    """Format a message with its arguments: by ``%`` as in the standard library, else by ``{}``."""
    text = event if type(event) is str else safe_str(event)
    if not args:
        return text
    with suppress(Exception):
        return text % (args[0] if len(args) == 1 and isinstance(args[0], dict) and args[0] else args)
    with suppress(Exception):
        if "{" in text:
            return text.format(*args)
    return f"{text} {safe_str(args, repr)}"


def payload_of(
    event: str,
    payload: Any,
    exc_info: Any,
    fields: dict[str, Any],
    *,
    severity: str = "INFO",
    strict: bool,
    with_locals: bool = False,
    problem: str = "",
) -> Any:
    """Return the payload of a call: its own with the call's fields and exception, or a ``log`` of the message.

    A payload's own keys win over fields and exception.
    """
    error = None if exc_info is None or exc_info is False else exceptions.find(exc_info)
    details = {} if error is None else exceptions.describe(error, with_locals=with_locals)
    if problem:
        details["problem"] = problem
    if payload is None:
        return log_payload(event, severity, fields=fields, **details)
    if not details and not fields:
        return payload
    return {**details, **fields, **_as_dict(payload, strict)}


def _as_dict(payload: Any, strict: bool) -> dict[Any, Any]:
    if isinstance(payload, dict):
        return payload
    try:
        data = _decode(payload) if type(payload) is msgspec.Raw else msgspec.to_builtins(payload, enc_hook=to_data)
    except Exception:
        if strict:
            raise
        data, problem = make_encodable(payload)
        if isinstance(data, dict):
            return with_problem(data, problem)
    if isinstance(data, dict):
        return data
    if strict:
        raise TypeError(_NO_OBJECT)
    return {"value": data, "problem": _NO_OBJECT}


def encode_object(value: Any, *, strict: bool) -> bytes:
    """Encode as one JSON object in one line, with the fallback encoding if necessary.

    Raises:
        Exception: the value does not encode unchanged; only if ``strict``.
    """
    try:
        return encode_unchanged(value)
    except Exception:
        if strict:
            raise
        return encode_with_fallback(value)


def encode_unchanged(value: Any) -> bytes:
    """Encode as one JSON object in one line.

    Raises:
        Exception: the value has no JSON form without a loss, more than 3 MiB or 200 levels, or keys such as ``1`` and
            ``"1"`` that would be written the same.
    """
    encoded = _encode(value)
    if may_write_a_key_twice(value, encoded.count(_BRACE)) and has_duplicate_key(encoded):
        raise ValueError(SAME_KEYS)
    if len(encoded) > 2 * MAX_LEVELS or type(value) is msgspec.Raw or _NEWLINE in encoded:
        encoded = _checked(value, encoded)
    if encoded[0] != _BRACE:
        raise TypeError(_NO_OBJECT)
    if encoded.find(b"null") >= 0 and holds_no_number(value):
        raise ValueError(NO_NUMBER)
    return encoded


def encode_with_fallback(value: Any) -> bytes:
    """Encode as one JSON object in one line, and replace values that do not encode. Never raises.

    The object's ``problem`` names each change with its path. A ``problem`` of the value itself stays: the changes are
    added to a text, or written as ``problem 2``. Anything beyond 3 MiB or 200 levels is cut off.
    """
    try:
        encoded = _checked(value, _encode(value))
        data, problem = _decode(encoded), _NO_OBJECT
        if isinstance(data, dict):
            data, problem = make_encodable(value)
    except Exception:
        data, problem = make_encodable(value)
    if not isinstance(data, dict):
        data = {"value": data}
    return _encode(with_problem(data, problem))


def with_problem(data: dict[str, Any], problem: str) -> dict[str, Any]:
    """Add a description of the changes to the data's ``problem``, and return the data."""
    own = data.get("problem")
    if own is None:
        return {**data, "problem": problem}
    if isinstance(own, str):
        return {**data, "problem": f"{own}; {problem}"}
    return {**data, unused_key("problem", data): problem}


def _checked(value: Any, encoded: bytes) -> bytes:
    """Return the encoded value in one line; raise ValueError if it is larger or deeper than readers accept."""
    if type(value) is msgspec.Raw or _NEWLINE in encoded:  # msgspec writes Raw unchecked
        encoded = _encode(_decode(encoded))
    size = len(encoded)  # each level has two bytes
    if size > MAX_BYTES or (size > 2 * MAX_LEVELS and is_deeper_than(encoded, MAX_LEVELS)):
        raise ValueError(f"more than {MAX_BYTES} bytes or {MAX_LEVELS} levels")
    return encoded
