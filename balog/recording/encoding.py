"""From what a logging call was given to the JSON of an event's parts, whatever it was given."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec

from balog.duplicate_keys import has_duplicate_key
from balog.event import MAX_CHANNEL_LENGTH
from balog.payload import log_payload
from balog.recording import exceptions
from balog.recording.fallback_encoding import (
    MAX_BYTES,
    MAX_LEVELS,
    NO_NUMBER,
    SAME_KEYS,
    clean_text,
    holds_no_number,
    is_deeper_than,
    may_write_a_key_twice,
    safe_str,
    salvage,
    to_data,
    unused,
)

__all__ = ["encode_as_it_is", "encode_channel", "encode_object", "encode_somehow", "message_text", "payload_of"]

_BRACE, _NEWLINE = b"{\n"
_NO_OBJECT = "a payload is an object; this one was not"


_encode = msgspec.json.Encoder(enc_hook=to_data).encode
_decode = msgspec.json.decode


def encode_channel(name: str) -> bytes:
    """Encode a name that somebody chose as a JSON string, cut to what a channel may be."""
    return _encode(clean_text(name[:MAX_CHANNEL_LENGTH]) or "unnamed")


def message_text(event: Any, args: tuple[Any, ...]) -> str:
    """Give the event as text with its arguments put in: at ``%`` as in the standard library, else at ``{}``."""
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
    """Give the payload of a call: the given one with the call's fields and exception, or a ``log`` of the message.

    Fields and exception never hide what a payload says itself.
    """
    error = None if exc_info is None or exc_info is False else exceptions.find(exc_info)
    beside = {} if error is None else exceptions.describe(error, with_locals=with_locals)
    if problem:
        beside["problem"] = problem
    if payload is None:
        return log_payload(event, severity, fields=fields, **beside)
    if not beside and not fields:
        return payload
    return {**beside, **fields, **_as_dict(payload, strict)}


def _as_dict(payload: Any, strict: bool) -> dict[Any, Any]:
    if isinstance(payload, dict):
        return payload
    try:
        data = _decode(payload) if type(payload) is msgspec.Raw else msgspec.to_builtins(payload, enc_hook=to_data)
    except Exception:
        if strict:
            raise
        data, problem = salvage(payload)
        if isinstance(data, dict):
            return with_problem(data, problem)
    if isinstance(data, dict):
        return data
    if strict:
        raise TypeError(_NO_OBJECT)
    return {"value": data, "problem": _NO_OBJECT}


def encode_object(value: Any, *, strict: bool) -> bytes:
    """Encode as one JSON object in one line, if need be by changing what does not encode.

    Raises:
        Exception: only if ``strict``, instead of changing anything.
    """
    try:
        return encode_as_it_is(value)
    except Exception:
        if strict:
            raise
        return encode_somehow(value)


def encode_as_it_is(value: Any) -> bytes:
    """Encode as one JSON object in one line.

    Raises:
        Exception: it has no such form, or none that keeps all of it; more than 3 MiB or 200 levels; keys such as ``1``
            and ``"1"`` that would be written the same.
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


def encode_somehow(value: Any) -> bytes:
    """Encode as one JSON object in one line, by changing the values that do not encode. Never raises.

    The object's ``problem`` names each change with its path. Where the value has a ``problem`` of its own, a text has
    ours added, and anything else is kept beside ``problem 2``. Of more than 3 MiB or 200 levels the rest is cut off.
    """
    try:
        encoded = _checked(value, _encode(value))
        data, problem = _decode(encoded), _NO_OBJECT
        if isinstance(data, dict):
            data, problem = salvage(value)
    except Exception:
        data, problem = salvage(value)
    if not isinstance(data, dict):
        data = {"value": data}
    return _encode(with_problem(data, problem))


def with_problem(data: dict[str, Any], problem: str) -> dict[str, Any]:
    """Return the data with a description of what was changed in it, beside what it says itself."""
    own = data.get("problem")
    if own is None:
        return {**data, "problem": problem}
    if isinstance(own, str):
        return {**data, "problem": f"{own}; {problem}"}
    return {**data, unused("problem", data): problem}


def _checked(value: Any, encoded: bytes) -> bytes:
    """Give what was encoded in one line, unless it is more than readers take."""
    if type(value) is msgspec.Raw or _NEWLINE in encoded:  # msgspec passes Raw on unseen
        encoded = _encode(_decode(encoded))
    size = len(encoded)  # each level takes two bytes
    if size > MAX_BYTES or (size > 2 * MAX_LEVELS and is_deeper_than(encoded, MAX_LEVELS)):
        raise ValueError(f"more than {MAX_BYTES} bytes or {MAX_LEVELS} levels")
    return encoded
