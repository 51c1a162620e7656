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
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from balog import config as configs
from balog.delivery.api.refusals import Refusal
from balog.errors import ConfigError

__all__ = ["ANYONE", "Caller", "Right", "TokenEntry", "TokenFile", "Tokens", "add_token", "make_token"]

Right = Literal["send", "read", "configure", "register"]
RIGHTS: tuple[Right, ...] = ("send", "read", "configure", "register")

_PREFIX = "balog_"
_MAX_TOKEN = 200
_LOOK = 1.0  # seconds between looks at the file

TokenName = Annotated[
    str, Meta(pattern=r"^[A-Za-z0-9_.-]{1,100}$", description="Who has it: 1 to 100 letters, digits, '.', '_' or '-'.")
]


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


class TokenFile(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """The file of tokens. Two of them may have one name, so that a token is changed without a gap."""

    tokens: tuple[TokenEntry, ...] = ()


class Caller:
    """Who sends a request.

    Attributes:
        name: the token's; "" where the service has no tokens.
    """

    def __init__(self, name: str, may: tuple[Right, ...], types: tuple[str, ...]) -> None:
        self.name = name
        self._may = frozenset(may)
        globs = [re.compile(fnmatch.translate(glob)).match for glob in types]
        self._is_for_all = "*" in types
        self._matches = lru_cache(maxsize=1000)(lambda name: any(match(name) for match in globs))

    def may(self, right: Right) -> bool:
        """Tell whether it has the right."""
        return right in self._may

    def is_for(self, type: str) -> bool:
        """Tell whether its rights are for events of that type."""
        return self._is_for_all or self._matches(type)

    def check(self, right: Right, type: str | None = None) -> None:
        """See that it has a right, and for that type where one is given.

        Raises:
            Refusal: 403.
        """
        if not self.may(right):
            raise Refusal(403, f"the token {self.name} may not {right}")
        if type is not None and not self.is_for(type):
            raise Refusal(403, f"the token {self.name} is not for this type")


ANYONE = Caller("", RIGHTS, ("*",))
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
        self._looked = time.monotonic()
        self._stamp = self._stat()
        self._callers = _callers(configs.load(self.path, TokenFile))

    def caller(self, authorization: str) -> Caller:
        """Give whose token it is.

        Args:
            authorization: the header of that name, "" where there is none.

        Raises:
            Refusal: 401, no bearer token, or not one of these.
        """
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            raise _unauthorized("want the header Authorization: Bearer TOKEN", "")
        self._look()
        digest = _digest(token) if len(token) <= _MAX_TOKEN else ""
        found = self._callers.get(digest)
        # What is looked up is a hash: how long that takes tells nothing of a token. The comparison is exact again.
        if found is None or not hmac.compare_digest(found[0], digest):
            raise _unauthorized("the token is not known", ' error="invalid_token"')
        return found[1]

    def _stat(self) -> tuple[int, int, int]:
        try:
            found = os.stat(self.path)
        except OSError:
            return (0, 0, 0)
        return (found.st_mtime_ns, found.st_size, found.st_ino)

    def _look(self) -> None:
        if time.monotonic() - self._looked < _LOOK or not self._lock.acquire(blocking=False):
            return
        try:
            self._looked = time.monotonic()
            stamp = self._stat()
            if stamp == self._stamp:
                return
            self._stamp = stamp
            try:
                self._callers = _callers(configs.load(self.path, TokenFile))
                self.problem = ""
            except ConfigError as error:
                self.problem = f"the tokens stay as they were: {error}"
                self._say(self.problem)
        finally:
            self._lock.release()


def _callers(file: TokenFile) -> dict[str, tuple[str, Caller]]:
    return {entry.hash: (entry.hash, Caller(entry.name, entry.may, entry.types)) for entry in file.tokens}


def _digest(token: str) -> str:
    return "sha256:" + hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _unauthorized(problem: str, error: str) -> Refusal:
    return Refusal(401, problem, headers={"WWW-Authenticate": f'Bearer realm="balog"{error}'})


def make_token(
    name: str, may: tuple[Right, ...] = ("send",), types: tuple[str, ...] = ("*",)
) -> tuple[str, TokenEntry]:
    """Make a token and what is kept of it.

    Raises:
        ConfigError: a name that a token can't have.
    """
    token = _PREFIX + secrets.token_urlsafe(32)
    entry = {"name": name, "hash": _digest(token), "may": may, "types": types}
    try:
        return token, msgspec.convert(entry, TokenEntry)
    except msgspec.ValidationError as error:
        raise ConfigError(f"no token can be made so: {error}") from None


def add_token(path: str | os.PathLike[str], entry: TokenEntry) -> None:
    """Write an entry into a file of tokens, which only this user can read where it is a new one.

    Raises:
        ConfigError: the file is there and is none of tokens.
        OSError: it can't be written.
    """
    place = Path(path)
    is_there = place.exists()
    before = configs.load(place, TokenFile).tokens if is_there else ()
    data = msgspec.json.format(msgspec.json.encode(TokenFile(tokens=(*before, entry))), indent=2) + b"\n"
    beside = place.with_name(f".{place.name}.{os.getpid()}")
    mode = place.stat().st_mode & 0o777 if is_there else 0o600
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, place)
    except BaseException:
        os.unlink(beside)
        raise
