"""Signatures as the specification of Standard Webhooks (standardwebhooks.com) says.

``webhook-id`` stays the same when a message is sent again, ``webhook-timestamp`` is the try's own, and
``webhook-signature`` has a ``v1`` signature for each key, so that a receiver may change to a new one in its own time.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from collections.abc import Sequence

from balog.errors import ConfigError
from balog.secrets import Secret

__all__ = ["batch_id", "read_key", "read_keys", "sign"]

_MIN_KEY_BYTES = 24


def sign(id: str, body: bytes, keys: Sequence[bytes]) -> dict[str, str]:
    """Give the headers of one try; without a key it has no signature.

    Args:
        id: of the message, the same in each try.
        keys: each of them signs, in this order: the newest first.
    """
    now = str(int(time.time()))
    headers = {"webhook-id": id, "webhook-timestamp": now}
    if keys:
        signed = f"{id}.{now}.".encode() + body
        marks = [base64.b64encode(hmac.digest(key, signed, "sha256")).decode() for key in keys]
        headers["webhook-signature"] = " ".join(f"v1,{mark}" for mark in marks)
    return headers


def batch_id(ids: Sequence[str]) -> str:
    """Give the id of a message that is made of events: the same for the same events in the same order."""
    return "batch_" + hashlib.sha256("\n".join(ids).encode()).hexdigest()[:40]


def read_keys(secrets: Sequence[Secret], path: str = "secrets") -> list[bytes]:
    """Give the keys that secrets hold.

    Raises:
        ConfigError: a secret that is not there, or no key; ``path`` says which.
    """
    return [read_key(secret.reveal(f"{path}[{n}]"), f"{path}[{n}]") for n, secret in enumerate(secrets)]


def read_key(text: str, path: str) -> bytes:
    """Read ``whsec_`` and base64; no message has any of it.

    Raises:
        ConfigError: at ``path``.
    """
    encoded = text.strip().removeprefix("whsec_")
    try:
        key = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except ValueError:
        raise ConfigError("is not a key; want whsec_ and then base64", path=path) from None
    if len(key) < _MIN_KEY_BYTES:
        raise ConfigError(f"is a key of {len(key)} bytes; want at least {_MIN_KEY_BYTES}", path=path)
    return key
