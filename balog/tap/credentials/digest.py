"""HTTP Digest: a user signs in without sending the password."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from secrets import token_hex
from urllib.parse import quote, urlsplit

from balog.tap.errors import SourceError
from balog.tap.http.connections import Request

_ALGORITHMS = {"MD5": "md5", "SHA-256": "sha256"}
_MAX_HEADER = 16 * 1024
_NAME = r"[!#$%&'*+.^_`|~\w-]+"
_PART = re.compile(
    rf"({_NAME})"  # a scheme, or a field with its value
    rf'(?:[ \t]*=[ \t]*("(?:[^"\\]|\\.)*"|[^\s,"]+)|[ \t]+(?={_NAME}[ \t]*=)|(?=[ \t]*(?:,|$)))'
)


@dataclass(frozen=True)
class _Challenge:
    realm: str
    nonce: str
    algorithm: str
    has_qop: bool
    opaque: str | None
    is_stale: bool
    charset: str


class Digest:
    """HTTP Digest (RFC 7616), for ``Client(auth=…)``: MD5, SHA-256, and ``-sess`` of them; qop ``auth``.

    The first request brings the server's challenge; it is used for all further requests until the server sends another.

    Args:
        user: the user's name.
        password: the user's password.
    """

    def __init__(self, user: str, password: str) -> None:
        self._user, self._password = user, password
        self._lock = threading.Lock()
        self._challenge: _Challenge | None = None
        self._count = 0

    def sign(self, request: Request) -> Request:
        """Return the request with its digest, once there is a challenge."""
        with self._lock:
            challenge = self._challenge
            if challenge is None:
                return request
            self._count += 1
            count = self._count
        value = self._authorization(challenge, request, count, token_hex(16))
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
        if f'nonce="{_escaped(challenge.nonce)}"' in used and not challenge.is_stale:
            return False
        with self._lock:
            if self._challenge is None or self._challenge.nonce != challenge.nonce:
                self._challenge, self._count = challenge, 0
        return True

    def __repr__(self) -> str:
        return "<Authorization: Digest …>"

    def _authorization(self, challenge: _Challenge, request: Request, count: int, own_nonce: str) -> str:
        uri = _target(request.url)
        name = challenge.algorithm.upper().removesuffix("-SESS")

        def digest(*parts: str) -> str:
            return _digest(name, ":".join(parts), challenge.charset)

        secret = digest(self._user, challenge.realm, self._password)
        if name != challenge.algorithm.upper():
            secret = digest(secret, challenge.nonce, own_nonce)
        asked = digest(request.method, uri)
        number = f"{count:08x}"
        used = [number, own_nonce, "auth"] if challenge.has_qop else []
        is_plain = all(" " <= char <= "~" for char in self._user)
        user = (
            {"username": f'"{_escaped(self._user)}"'} if is_plain else {"username*": f"UTF-8''{quote(self._user, '')}"}
        )
        fields = {
            **user,
            "realm": f'"{_escaped(challenge.realm)}"',
            "nonce": f'"{_escaped(challenge.nonce)}"',
            "uri": f'"{uri}"',
            "algorithm": challenge.algorithm,
            "response": f'"{digest(secret, challenge.nonce, *used, asked)}"',
        }
        if challenge.opaque is not None:
            fields["opaque"] = f'"{_escaped(challenge.opaque)}"'
        if challenge.has_qop:
            fields |= {"qop": "auth", "nc": number, "cnonce": f'"{own_nonce}"'}
        return "Digest " + ", ".join(f"{key}={value}" for key, value in fields.items())


def _digest(name: str, text: str, charset: str) -> str:
    return hashlib.new(_ALGORITHMS[name], text.encode(charset, "replace"), usedforsecurity=False).hexdigest()


def _target(url: str) -> str:
    from urllib3.util import parse_url

    parts = urlsplit(parse_url(url).url)  # as urllib3 sends it
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _best(text: str) -> _Challenge:
    """Return the first Digest challenge that is supported; servers list the one that they prefer first."""
    found = False
    for scheme, fields in _challenges(text):
        if scheme != "digest":
            continue
        found = True
        algorithm = fields.get("algorithm", "MD5")
        name = algorithm.upper().removesuffix("-SESS")
        qops = [qop.strip().lower() for qop in fields.get("qop", "").split(",")] if "qop" in fields else []
        if name not in _ALGORITHMS:
            continue
        if "nonce" not in fields or (qops and "auth" not in qops):
            continue
        return _Challenge(
            realm=fields.get("realm", ""),
            nonce=fields["nonce"],
            algorithm=algorithm,
            has_qop=bool(qops),
            opaque=fields.get("opaque"),
            is_stale=fields.get("stale", "").lower() == "true",
            charset="utf-8" if fields.get("charset", "").upper() == "UTF-8" else "latin-1",
        )
    if not found:
        raise SourceError(
            "the server rejected the request, and does not ask for HTTP Digest; is this the right sign-in?"
        )
    raise SourceError("the server asks for a kind of HTTP Digest that is not supported: want MD5 or SHA-256, qop auth")


def _challenges(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the schemes of ``WWW-Authenticate`` in lower case, with their fields (RFC 9110, 11.6.1)."""
    scheme = ""
    fields: dict[str, str] = {}
    for part in _PART.finditer(text):
        name, value = part[1].lower(), part[2]
        if value is None:
            if scheme:
                yield scheme, fields
            scheme, fields = name, {}
        else:
            is_quoted = value.startswith('"')
            fields[name] = re.sub(r"\\(.)", r"\1", value[1:-1]) if is_quoted else value
    if scheme:
        yield scheme, fields


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
