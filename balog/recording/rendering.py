"""From what a logging call was given to the JSON of an event's parts, whatever it was given."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import msgspec

from balog.event import MAX_CHANNEL_LENGTH
from balog.payload import log_payload
from balog.recording import exceptions
from balog.recording.salvage import clean_text, is_deeper_than, safe_str, salvage

__all__ = ["encode_as_it_is", "encode_channel", "encode_object", "encode_somehow", "message_text", "payload_of"]

_MAX_LEVELS = 200
_MAX_BYTES = 3 * 1024 * 1024
"""What a payload or a context may have: twice that is well below what a broker searches in one piece."""

_BRACE, _NEWLINE = b"{\n"
_NO_OBJECT = "a payload is an object; this one was not"
_NO_NUMBER = "a number that is nan or infinite, null is written"


def _to_data(value: Any) -> Any:
    """Give a pydantic model as JSON-like data; msgspec asks for what it does not know itself."""
    dump = getattr(type(value), "model_dump", None)
    if dump is None:
        raise TypeError(f"{type(value).__name__} has no JSON form")
    return dump(value, mode="json")


_encode = msgspec.json.Encoder(enc_hook=_to_data).encode
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
        data = _decode(payload) if type(payload) is msgspec.Raw else msgspec.to_builtins(payload, enc_hook=_to_data)
    except Exception:
        if strict:
            raise
        data, problem = salvage(payload)
        if isinstance(data, dict):
            return {**data, "problem": problem}
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
        Exception: it has no such form, or none that keeps all of it; more than 3 MiB or 200 levels.
    """
    encoded = _encode(value)
    if len(encoded) > 2 * _MAX_LEVELS or type(value) is msgspec.Raw or _NEWLINE in encoded:
        encoded = _checked(value, encoded)
    if encoded[0] != _BRACE:
        raise TypeError(_NO_OBJECT)
    if encoded.find(b"null") >= 0 and _holds_no_number(value):
        raise ValueError(_NO_NUMBER)
    return encoded


def encode_somehow(value: Any) -> bytes:
    """Encode as one JSON object in one line, by changing what does not encode; the object's ``problem`` tells of it.

    More than 3 MiB or 200 levels are cut down. Never raises.
    """
    try:
        encoded = _checked(value, _encode(value))
    except Exception:
        data, problem = salvage(value)
    else:
        data, problem = _decode(encoded), _NO_NUMBER
        if not isinstance(data, dict):
            data, problem = {"value": msgspec.Raw(encoded)}, _NO_OBJECT
    if not isinstance(data, dict):
        data = {"value": data}
    return _encode({**data, "problem": problem})


def _checked(value: Any, encoded: bytes) -> bytes:
    """Give what was encoded in one line, unless it is more than readers take."""
    if type(value) is msgspec.Raw or _NEWLINE in encoded:  # msgspec passes Raw on unseen
        encoded = _encode(_decode(encoded))
    size = len(encoded)  # each level takes two bytes
    if size > _MAX_BYTES or (size > 2 * _MAX_LEVELS and is_deeper_than(encoded, _MAX_LEVELS)):
        raise ValueError(f"more than {_MAX_BYTES} bytes or {_MAX_LEVELS} levels")
    return encoded


def _holds_no_number(value: Any) -> bool:
    """Tell whether some null of the encoded value was "nan" or infinite."""
    try:
        left = [msgspec.to_builtins(value, enc_hook=_to_data)]
    except Exception:
        return False
    while left:
        part = left.pop()
        if isinstance(part, dict):
            left.extend(part.values())
        elif isinstance(part, (list, tuple, set, frozenset)):
            left.extend(part)
        elif isinstance(part, float) and not math.isfinite(part):
            return True
    return False
