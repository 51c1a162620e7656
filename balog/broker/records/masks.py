"""Mask encoded values, and change their schemas accordingly.

null stays null, and a masked array is an array of its items masked. Everything else becomes what the mask makes of its
kind; ``Mask.becomes`` says the same for the types of JSON Schema.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

import msgspec
from msgspec import Raw, Struct

from balog.broker.records.config import AnyMask, Redact, Sha256
from balog.broker.records.json_members import read_items, read_value, write
from balog.common.errors import ConfigError
from balog.common.secrets import Secret

_MIN_KEY_BYTES = 16
_BLOCK_BYTES = 64  # of SHA-256
_NULL = Raw(b"null")
_N, _ARRAY, _TEXT, _OBJECT = b'n["{'

Hide = Callable[[bytes], bytes]
"""From the JSON of a text, number, boolean or object to the JSON that stands for it."""


class Mask(Struct, frozen=True):
    """A compiled mask.

    Attributes:
        apply: converts a value to its masked form.
        becomes: for each type of JSON Schema but null and array, the types that a value of it may have afterwards.
        max_length: characters of the longest text that it makes, if that is known.
        keeps_apart: whether different values stay different, so that a key stays one.
    """

    apply: Callable[[Raw], Raw]
    becomes: Mapping[str, tuple[str, ...]]
    max_length: int | None = None
    keeps_apart: bool = False


_SCALARS = ("string", "integer", "number", "boolean", "object")
_ALL_TEXT = dict.fromkeys(_SCALARS, ("string",))
# A column keeps its type when its values become null, so that a target needs no new column.
_ALL_NULL = {kind: (kind, "null") for kind in _SCALARS}


def build_mask(config: AnyMask) -> Mask:
    """Compile a mask; this reads its secret key.

    Raises:
        ConfigError: the key is not there, or too short.
    """
    if isinstance(config, Sha256):
        return Mask(_each(_keyed(config.key)), _ALL_TEXT, 64, True)
    if config == "md5":
        return Mask(_each(_md5), _ALL_TEXT, 32, True)
    if config == "null":
        return Mask(lambda raw: _NULL, {**_ALL_NULL, "array": ("array", "null")})
    text = config.text if isinstance(config, Redact) else Redact().text
    return Mask(_each(_redact(text)), {**_ALL_NULL, "string": ("string",)})


def _each(hide: Hide) -> Callable[[Raw], Raw]:
    """Mask a value, or each item of an array."""

    def apply(raw: Raw) -> Raw:
        value = bytes(raw)
        first = value[0]
        if first == _N:
            return raw
        if first == _ARRAY:
            return Raw(write([apply(item) for item in read_items(value)]))
        return Raw(hide(value))

    return apply


def _keyed(secret: Secret) -> Hide:
    key = secret.reveal().encode("utf-8", "surrogateescape")
    if len(key) < _MIN_KEY_BYTES:
        raise ConfigError(f"the key has less than {_MIN_KEY_BYTES} bytes; make one with: openssl rand -hex 32")
    begin = hashlib.sha256
    # RFC 2104, begun once: the two hashes that have taken the key in are copied, which is half the time of hmac's copy.
    padded = (key if len(key) <= _BLOCK_BYTES else begin(key).digest()).ljust(_BLOCK_BYTES, b"\0")
    inner, outer = (begin(bytes(byte ^ pad for byte in padded)) for pad in (0x36, 0x5C))

    def hide(value: bytes) -> bytes:
        first, second = inner.copy(), outer.copy()
        first.update(value[1:-1] if value[0] == _TEXT and b"\\" not in value else _plain(value))
        second.update(first.digest())
        return b'"%b"' % second.hexdigest().encode()

    return hide


def _md5(value: bytes) -> bytes:
    return b'"%b"' % hashlib.md5(_plain(value), usedforsecurity=False).hexdigest().encode()


def _plain(value: bytes) -> bytes:
    """Return the bytes to hash: a text in UTF-8, a number as written, an object with sorted keys."""
    first = value[0]
    if first == _TEXT:
        if b"\\" not in value:
            return value[1:-1]
        text: str = read_value(value)
        return text.encode("utf-8", "surrogatepass")
    if first == _OBJECT:
        try:
            return msgspec.json.encode(read_value(value), order="sorted")
        except (ValueError, TypeError):  # a lone surrogate
            return value
    return value


def _redact(text: str) -> Hide:
    constant = write(text)
    return lambda value: constant if value[0] == _TEXT else b"null"
