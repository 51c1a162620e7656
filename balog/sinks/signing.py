"""Signatures by the specification of Standard Webhooks (standardwebhooks.com).

``webhook-id`` is the same in all attempts of a message, ``webhook-timestamp`` differs, and ``webhook-signature`` has a
``v1`` signature per key, so that receivers can rotate keys at their own time.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from collections.abc import Sequence

from balog.common.errors import ConfigError
from balog.common.secrets import Secret

_MIN_KEY_BYTES = 24


def sign(id: str, body: bytes, keys: Sequence[bytes]) -> dict[str, str]:
    """Return the headers of one attempt; without keys there is no signature.

    Args:
        id: the message's id, the same in each attempt.
        keys: the keys to sign with, the newest first.
    """
    now = str(int(time.time()))
    headers = {"webhook-id": id, "webhook-timestamp": now}
    if keys:
        signed = f"{id}.{now}.".encode() + body
        marks = [base64.b64encode(hmac.digest(key, signed, "sha256")).decode() for key in keys]
        headers["webhook-signature"] = " ".join(f"v1,{mark}" for mark in marks)
    return headers


def batch_id(ids: Sequence[str]) -> str:
    """Return the id of a message of several events, the same for the same events in the same order."""
    return "batch_" + hashlib.sha256("\n".join(ids).encode()).hexdigest()[:40]


def read_keys(secrets: Sequence[Secret], path: str = "secrets") -> list[bytes]:
    """Return the keys in secrets.

    Raises:
        ConfigError: a secret is missing or not a key; ``path`` names it.
    """
    return [read_key(secret.reveal(f"{path}[{n}]"), f"{path}[{n}]") for n, secret in enumerate(secrets)]


def read_key(text: str, path: str) -> bytes:
    """Decode ``whsec_`` and base64. Errors contain no part of the key.

    Raises:
        ConfigError: the text is not a key, or is too short; its path is ``path``.
    """
    encoded = text.strip().removeprefix("whsec_")
    try:
        key = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except ValueError:
        raise ConfigError("is not a key; expected whsec_ and then base64", path=path) from None
    if len(key) < _MIN_KEY_BYTES:
        raise ConfigError(f"is a key of {len(key)} bytes; expected at least {_MIN_KEY_BYTES}", path=path)
    return key
