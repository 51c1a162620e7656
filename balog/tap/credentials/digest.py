"""HTTP Digest: a user signs in without sending the password."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Mapping
from secrets import token_hex
from urllib.parse import urlsplit

from balog.tap.errors import SourceError
from balog.tap.http.connections import Request

_ALGORITHMS = {"MD5": "md5", "SHA-256": "sha256"}
_MAX_HEADER = 16 * 1024
_QUOTED = ("username", "realm", "nonce", "uri", "response", "opaque", "cnonce")


class Digest:
    """HTTP Digest (RFC 7616), for ``Client(auth=…)``: MD5 and SHA-256; qop ``auth``.

    The first request brings the server's challenge; it is used for all further requests until the server sends another.

    Args:
        user: the user's name.
        password: the user's password.
    """

    def __init__(self, user: str, password: str) -> None:
        self._user, self._password = user, password
        self._lock = threading.Lock()
        self._challenge: dict[str, str] = {}
        self._count = 0

    def sign(self, request: Request) -> Request:
        """Return the request with its digest, once there is a challenge."""
        with self._lock:
            challenge = self._challenge
            if not challenge:
                return request
            self._count += 1
            count = self._count
        value = self._authorization(challenge, request, f"{count:08x}", token_hex(16))
        return request._replace(headers={**request.headers, "Authorization": value})

    def rejected(self, request: Request, status: int, headers: Mapping[str, str]) -> bool:
        """Use the new challenge of a 401; return False if the server has rejected an answer to this one.

        Raises:
            SourceError: the server has no challenge that is supported.
        """
        if status != 401:
            return False
        challenge = _best(headers.get("www-authenticate", "")[:_MAX_HEADER])
        used = request.headers.get("Authorization", "")
        if f'nonce="{_escaped(challenge["nonce"])}"' in used and challenge.get("stale", "").lower() != "true":
            return False
        with self._lock:
            if self._challenge.get("nonce") != challenge["nonce"]:
                self._challenge, self._count = challenge, 0
        return True

    def __repr__(self) -> str:
        return "<Authorization: Digest …>"

    def _authorization(self, challenge: dict[str, str], request: Request, number: str, own_nonce: str) -> str:
        uri, algorithm = _target(request.url), challenge.get("algorithm", "MD5")
        realm, nonce = challenge.get("realm", ""), challenge["nonce"]

        def digest(*parts: str) -> str:
            text = ":".join(parts).encode()
            return hashlib.new(_ALGORITHMS[algorithm.upper()], text, usedforsecurity=False).hexdigest()

        proof = {"qop": "auth", "nc": number, "cnonce": own_nonce} if "qop" in challenge else {}
        used = [number, own_nonce, "auth"] if proof else []
        secret, asked = digest(self._user, realm, self._password), digest(request.method, uri)
        fields = {"username": self._user, "realm": realm, "nonce": nonce, "uri": uri, "algorithm": algorithm, **proof}
        fields |= {"opaque": challenge["opaque"]} if "opaque" in challenge else {}
        fields["response"] = digest(secret, nonce, *used, asked)
        quoted = {name: f'"{_escaped(value)}"' if name in _QUOTED else value for name, value in fields.items()}
        return "Digest " + ", ".join(f"{name}={value}" for name, value in quoted.items())


def _target(url: str) -> str:
    from urllib3.util import parse_url

    parts = urlsplit(parse_url(url).url)  # as urllib3 sends it
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _best(text: str) -> dict[str, str]:
    """Return the first Digest challenge that is supported; servers list the one that they prefer first."""
    from urllib.request import parse_http_list

    _, *challenges = re.split(r"(?:^|,)\s*Digest\s", text, flags=re.ASCII | re.IGNORECASE)
    for challenge in challenges:
        members = (member.partition("=") for member in parse_http_list(challenge))
        fields = {name.strip().lower(): value.strip().strip('"') for name, _, value in members}
        qops = [qop.strip().lower() for qop in fields.get("qop", "auth").split(",")]
        if fields.get("algorithm", "MD5").upper() in _ALGORITHMS and "nonce" in fields and "auth" in qops:
            return fields
    if not challenges:
        raise SourceError(
            "the server rejected the request, and does not ask for HTTP Digest; is this the right sign-in?"
        )
    raise SourceError(
        "the server asks for a kind of HTTP Digest that is not supported: expected MD5 or SHA-256, qop auth"
    )


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
