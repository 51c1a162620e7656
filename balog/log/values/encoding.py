"""Encode the arguments of a logging call as the JSON parts of an event."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec

from balog.event import MAX_CHANNEL_LENGTH
from balog.event.log_payload import log_payload
from balog.log.values import exceptions
from balog.log.values.json_values import clean_text, replaced, safe_str
from balog.log.values.value_encoder import as_dict, encode, encode_plain, encode_unchanged

_encode = msgspec.json.Encoder().encode


def encode_channel(name: str) -> bytes:
    """Encode any name as the JSON string of a channel, cut to a channel's length."""
    return _encode(clean_text(name[:MAX_CHANNEL_LENGTH]) or "unnamed")


def message_text(event: Any, args: tuple[Any, ...], *, strict: bool = False) -> str:
    """Format a message with its arguments: by ``%`` as in the standard library, else by ``{}``.

    Raises:
        Exception: the arguments do not fit the placeholders; only if ``strict``.
    """
    text = event if type(event) is str else safe_str(event)
    if not args:
        return text
    try:
        return _formatted(text, args)
    except Exception:
        if strict and ("%" in text or "{" in text):
            raise
    with suppress(Exception):
        return f"{text} {args!r}"
    args = replaced(args, 2)  # an argument that raises costs no other
    with suppress(Exception):
        return _formatted(text, args)
    return f"{text} {safe_str(args, repr)}"


def _formatted(text: str, args: tuple[Any, ...]) -> str:
    try:
        return text % (args[0] if len(args) == 1 and isinstance(args[0], dict) and args[0] else args)
    except Exception:
        if "{" not in text:
            raise
    formatted, used = text.format(*args), _count_used(text, args)
    return formatted if used == len(args) else f"{formatted} {safe_str(args[used:], repr)}"


def _count_used(text: str, args: tuple[Any, ...]) -> int:
    """Return how many of the first arguments a text of ``str.format`` needs."""
    used = len(args)
    with suppress(IndexError):
        while used:
            text.format(*args[: used - 1])
            used -= 1
    return used


def payload_of(
    event: str,
    payload: Any,
    exc_info: Any,
    fields: dict[str, Any],
    *,
    severity: str = "INFO",
    strict: bool,
    problem: str = "",
) -> Any:
    """Return the payload of a call: its own with the call's fields and exception, or a ``log`` of the message.

    A payload's own keys win over fields and exception.
    """
    error = None if exc_info is None or exc_info is False else exceptions.find(exc_info)
    details = {} if error is None else exceptions.describe(error)
    if problem:
        details["problem"] = problem
    if payload is None:
        return log_payload(event, severity, fields=fields, **details)
    if not details and not fields:
        return payload
    own = as_dict(payload, strict=strict)
    merged = {**details, **fields, **own}
    given = fields.get("problem", problem)
    if own is not payload and "problem" in own and given:  # neither replaces the other
        merged["problem"] = f"{safe_str(given)}; {safe_str(own['problem'])}"
    return merged


def encode_object(value: Any, *, strict: bool) -> bytes:
    """Encode as one JSON object in one line, with the fallback encoding if necessary.

    Raises:
        Exception: the value does not encode unchanged; only if ``strict``.
    """
    encoded = encode_plain(value)
    if encoded is not None:
        return encoded
    return (encode_unchanged(value) if strict else encode(value))[0]
