"""Who may do what: bearer tokens, of which only hashes are kept, and the rights of each.

A token is 256 random bits, so its plain SHA-256 can't be turned back by trying, as a password's could; a slow hash
would cost every request what it saves nobody.
"""

from __future__ import annotations

import fnmatch
import hashlib
import hmac
import os
import re
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from balog import config as configs
from balog.delivery.api.errors import ApiError
from balog.errors import ConfigError
from balog.storage.local_files import replace_file

__all__ = [
    "ANONYMOUS",
    "Principal",
    "Quota",
    "Right",
    "TokenEntry",
    "TokenFile",
    "Tokens",
    "add_token",
    "make_token",
    "read_tokens",
    "revoke_tokens",
]

Right = Literal["send", "read", "configure", "register"]
RIGHTS: tuple[Right, ...] = ("send", "read", "configure", "register")

_PREFIX = "balog_"
_MAX_TOKEN = 200
_REFRESH_SECONDS = 1.0  # seconds between looks at the file

TokenName = Annotated[
    str, Meta(pattern=r"^[A-Za-z0-9_.-]{1,100}$", description="Who has it: 1 to 100 letters, digits, '.', '_' or '-'.")
]


class Quota(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """How many events a token may send: so many at once, refilled evenly over a time. Each service counts by itself."""

    events: Annotated[int, Meta(ge=1, description="Events in that time.")]
    seconds: Annotated[float, Meta(gt=0, le=366 * 86_400, description="The time.")] = 86_400.0


class TokenEntry(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """One token as it is kept: its hash, and what its holder may do."""

    name: TokenName
    hash: Annotated[str, Meta(pattern="^sha256:[0-9a-f]{64}$", description="sha256: and the token's SHA-256 in hex.")]
    may: Annotated[
        tuple[Right, ...],
        Meta(
            min_length=1,
            description="send events, read status and schemas, configure the document, register schemas.",
        ),
    ] = ("send",)
    types: Annotated[
        tuple[str, ...],
        Meta(min_length=1, description="cls_type of the events and schemas that it is for; globs with * and ?."),
    ] = ("*",)
    expires: Annotated[datetime, Meta(tz=True, description="From then on it is refused; never if none.")] | None = None
    quota: Quota | None = None


class TokenFile(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """The file of tokens. Two of them may have one name, so that a token is changed without a gap."""

    tokens: tuple[TokenEntry, ...] = ()


class Principal:
    """Who sends a request.

    Attributes:
        name: the token's; "" where the service has no tokens.
        expires: seconds since the epoch, from which on it is refused.
    """

    def __init__(
        self,
        name: str,
        may: tuple[Right, ...],
        types: tuple[str, ...],
        expires: datetime | None = None,
        quota: Quota | None = None,
    ) -> None:
        self.name = name
        self.expires = float("inf") if expires is None else expires.timestamp()
        self._quota = quota
        self._left = float(quota.events) if quota is not None else 0.0
        self._filled = time.monotonic()
        self._lock = threading.Lock()
        self._may = frozenset(may)
        globs = [re.compile(fnmatch.translate(glob)).match for glob in types]
        self._is_for_all = "*" in types
        self._matches = lru_cache(maxsize=1000)(lambda name: any(match(name) for match in globs))

    def may(self, right: Right) -> bool:
        """Return whether it has the right."""
        return right in self._may

    def is_for(self, type: str) -> bool:
        """Return whether its rights are for events of that type."""
        return self._is_for_all or self._matches(type)

    def spend(self, events: int) -> None:
        """Count events that it sends. A request goes through whole while anything is left of the quota.

        Raises:
            ApiError: 429, nothing is left; with the seconds until something is.
        """
        quota = self._quota
        if quota is None:
            return
        rate = quota.events / quota.seconds
        with self._lock:  # large bodies are read in threads
            now = time.monotonic()
            self._left = min(self._left + (now - self._filled) * rate, quota.events)
            self._filled = now
            if self._left >= 1.0:
                self._left -= events
                return
            wait = (1.0 - self._left) / rate
        limit_text = f"{quota.events} events in {quota.seconds:g} seconds"
        raise ApiError(429, f"the token {self.name} has used its quota of {limit_text}", retry_after=wait)

    def check(self, right: Right, type: str | None = None) -> None:
        """See that it has a right, and for that type where one is given.

        Raises:
            ApiError: 403.
        """
        if not self.may(right):
            raise ApiError(403, f"the token {self.name} may not {right}")
        if type is not None and not self.is_for(type):
            raise ApiError(403, f"the token {self.name} is not for this type")


ANONYMOUS = Principal("", RIGHTS, ("*",))
"""Who connects to a service without tokens, which only this machine can."""


class Tokens:
    """The tokens of a file, which is read again when it has changed, at the latest a second later.

    A file that can't be used any more changes nothing: those that were read before stay, and ``problem`` says why.

    Args:
        say: called with one line when the file was refused.

    Raises:
        ConfigError: the file can't be read, or is not one of tokens.
    """

    def __init__(self, path: str | os.PathLike[str], say: Callable[[str], object] = lambda line: None) -> None:
        self.path = Path(path)
        self.problem = ""
        self._say = say
        self._lock = threading.Lock()
        self._refreshed = time.monotonic()
        self._stamp = self._stat()
        self._principals = _principals(configs.load(self.path, TokenFile))

    def principal(self, authorization: str) -> Principal:
        """Return whose token it is.

        Args:
            authorization: the header of that name, "" where there is none.

        Raises:
            ApiError: 401, no bearer token, or not one of these.
        """
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            raise _unauthorized("want the header Authorization: Bearer TOKEN", "")
        self._refresh()
        digest = _digest(token) if len(token) <= _MAX_TOKEN else ""
        found = self._principals.get(digest)
        # What is looked up is a hash: how long that takes tells nothing of a token. The comparison is exact again.
        if found is None or not hmac.compare_digest(found[0], digest):
            raise _unauthorized("the token is not known", ' error="invalid_token"')
        if time.time() >= found[1].expires:
            raise _unauthorized("the token has expired; ask for a new one", ' error="invalid_token"')
        return found[1]

    def _stat(self) -> tuple[int, int, int]:
        try:
            found = os.stat(self.path)
        except OSError:
            return (0, 0, 0)
        return (found.st_mtime_ns, found.st_size, found.st_ino)

    def _refresh(self) -> None:
        if time.monotonic() - self._refreshed < _REFRESH_SECONDS or not self._lock.acquire(blocking=False):
            return
        try:
            self._refreshed = time.monotonic()
            stamp = self._stat()
            if stamp == self._stamp:
                return
            self._stamp = stamp
            try:
                self._principals = _principals(configs.load(self.path, TokenFile), self._principals)
                self.problem = ""
            except ConfigError as error:
                self.problem = f"the tokens stay as they were: {error}"
                self._say(self.problem)
        finally:
            self._lock.release()


_Principals = dict[str, tuple[str, Principal, TokenEntry]]


def _principals(file: TokenFile, before: _Principals | None = None) -> _Principals:
    """Return the callers by the hash of their token; those whose entry is the same go on with what they have used."""
    found: _Principals = {}
    for entry in file.tokens:
        known = (before or {}).get(entry.hash)
        if known is not None and known[2] == entry:
            found[entry.hash] = known
        else:
            principal = Principal(entry.name, entry.may, entry.types, entry.expires, entry.quota)
            found[entry.hash] = (entry.hash, principal, entry)
    return found


def _digest(token: str) -> str:
    return "sha256:" + hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _unauthorized(problem: str, error: str) -> ApiError:
    return ApiError(401, problem, headers={"WWW-Authenticate": f'Bearer realm="balog"{error}'})


def make_token(
    name: str,
    may: tuple[Right, ...] = ("send",),
    types: tuple[str, ...] = ("*",),
    *,
    expires: datetime | None = None,
    quota: Quota | None = None,
) -> tuple[str, TokenEntry]:
    """Make a token and what is kept of it.

    Raises:
        ConfigError: a name that a token can't have.
    """
    token = _PREFIX + secrets.token_urlsafe(32)
    entry = {"name": name, "hash": _digest(token), "may": may, "types": types, "expires": expires, "quota": quota}
    try:
        return token, msgspec.convert(entry, TokenEntry)
    except msgspec.ValidationError as error:
        raise ConfigError(f"no token can be made so: {error}") from None


def read_tokens(path: str | os.PathLike[str]) -> tuple[TokenEntry, ...]:
    """Return the entries of a file of tokens.

    Raises:
        ConfigError: the file can't be read, or is not one of tokens.
    """
    return configs.load(Path(path), TokenFile).tokens


def add_token(path: str | os.PathLike[str], entry: TokenEntry) -> None:
    """Write an entry into a file of tokens, which only this user can read where it is a new one.

    Raises:
        ConfigError: the file is there and is none of tokens.
        OSError: it can't be written.
    """
    place = Path(path)
    _write(place, (*(read_tokens(place) if place.exists() else ()), entry))


def revoke_tokens(path: str | os.PathLike[str], name: str, hash: str = "") -> list[TokenEntry]:
    """Take the entries of a name out of a file of tokens.

    Args:
        hash: only the one whose hash begins so, with or without ``sha256:``.

    Returns:
        The entries that are gone; without any, the file is not written.

    Raises:
        ConfigError: the file can't be read, or is not one of tokens.
        OSError: it can't be written.
    """
    place, wanted = Path(path), hash.removeprefix("sha256:")
    entries = read_tokens(place)
    gone = [one for one in entries if one.name == name and one.hash.removeprefix("sha256:").startswith(wanted)]
    if gone:
        _write(place, [one for one in entries if one not in gone])
    return gone


def _write(place: Path, entries: Sequence[TokenEntry]) -> None:
    is_there = place.exists()
    data = msgspec.json.format(msgspec.json.encode(TokenFile(tokens=tuple(entries))), indent=2) + b"\n"
    replace_file(place, data, place.stat().st_mode & 0o777 if is_there else 0o600, syncs_folder=False)
