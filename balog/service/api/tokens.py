"""Bearer tokens and their rights. Only hashes of tokens are stored.

A token has 256 random bits, so its SHA-256 cannot be reversed by guessing, unlike that of a password. A slow hash would
cost time in every request, and add no protection.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta, Struct

from balog.common import config as configs
from balog.common.errors import ConfigError
from balog.common.storage.local_files import replace_file
from balog.service.api.errors import ApiError

Right = Literal["send", "read", "configure", "register"]
RIGHTS: tuple[Right, ...] = ("send", "read", "configure", "register")

_PREFIX = "balog_"
_MAX_TOKEN = 200
_REFRESH_SECONDS = 1.0  # seconds between looks at the file

TokenName = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9_.-]{1,100}$", description="The token's holder: 1 to 100 letters, digits, '.', '_' or '-'."
    ),
]


class TokenEntry(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """A stored token: its hash and its rights."""

    name: TokenName
    hash: Annotated[str, Meta(pattern="^sha256:[0-9a-f]{64}$", description="sha256: and the token's SHA-256 in hex.")]
    may: Annotated[
        tuple[Right, ...],
        Meta(
            min_length=1, description="send events, read status and schemas, configure the document, register schemas."
        ),
    ] = ("send",)
    types: Annotated[
        tuple[str, ...],
        Meta(min_length=1, description="cls_type of the events and schemas that the token covers; globs with * and ?."),
    ] = ("*",)
    expires: (
        Annotated[datetime, Meta(tz=True, description="Time from which the token is rejected; never if omitted.")]
        | None
    ) = None

    def is_for(self, type: str) -> bool:
        """Return whether the token covers a type."""
        return "*" in self.types or any(fnmatchcase(type, glob) for glob in self.types)

    def check(self, right: Right, type: str | None = None) -> None:
        """Check that the token has a right, and for a type if one is given.

        Raises:
            ApiError: 403, the right is missing.
        """
        if right not in self.may:
            raise ApiError(403, f"the token {self.name} may not {right}")
        if type is not None and not self.is_for(type):
            raise ApiError(403, f"the token {self.name} is not for this type")


class TokenFile(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """The file of tokens. Two tokens may have one name, so that a token can be rotated without a gap."""

    examples: ClassVar = (
        {
            "tokens": [
                {
                    "name": "shop",
                    "hash": "sha256:" + "0" * 64,
                    "may": ["send"],
                    "types": ["order.*"],
                    "expires": "2027-01-01T00:00:00Z",
                }
            ]
        },
    )

    tokens: Annotated[tuple[TokenEntry, ...], Meta(description="The tokens that the service accepts.")] = ()


ANONYMOUS = TokenEntry(name="", hash="", may=RIGHTS)
"""The sender of each request to a service without tokens, to which only this machine can connect."""


class Tokens:
    """The tokens of a file, for one thread. A changed file is reloaded within a second.

    If the changed file is not valid, the earlier tokens stay valid.

    Args:
        say: called with one line when a changed file is rejected.

    Raises:
        ConfigError: the file cannot be read, or is not a file of tokens.
    """

    def __init__(self, path: str | os.PathLike[str], say: Callable[[str], object] = lambda line: None) -> None:
        self.path = Path(path)
        self._say = say
        self._refreshed = time.monotonic()
        self._stamp = self._stat()
        self._entries = self._load()

    def principal(self, authorization: str) -> TokenEntry:
        """Return the entry of a token.

        Args:
            authorization: the header ``Authorization``; "" if there is none.

        Raises:
            ApiError: 401, no bearer token, or an unknown or expired one.
        """
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            raise _unauthorized("expected the header Authorization: Bearer TOKEN", "")
        self._refresh()
        digest = _digest(token) if len(token) <= _MAX_TOKEN else ""
        entry = self._entries.get(digest)
        # The lookup uses the hash, so its timing reveals nothing about a token. The comparison is constant-time.
        if entry is None or not hmac.compare_digest(entry.hash, digest):
            raise _unauthorized("the token is not known", ' error="invalid_token"')
        if entry.expires is not None and time.time() >= entry.expires.timestamp():
            raise _unauthorized("the token has expired; ask for a new one", ' error="invalid_token"')
        return entry

    def _load(self) -> dict[str, TokenEntry]:
        return {entry.hash: entry for entry in read_tokens(self.path)}

    def _stat(self) -> tuple[int, int, int]:
        try:
            status = os.stat(self.path)
        except OSError:
            return (0, 0, 0)
        return (status.st_mtime_ns, status.st_size, status.st_ino)

    def _refresh(self) -> None:
        if time.monotonic() - self._refreshed < _REFRESH_SECONDS:
            return
        self._refreshed = time.monotonic()
        stamp = self._stat()
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._entries = self._load()
        except ConfigError as error:
            self._say(f"the earlier tokens stay valid: {error}")


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
) -> tuple[str, TokenEntry]:
    """Create a token and its entry.

    Raises:
        ConfigError: the name is not valid.
    """
    token = _PREFIX + secrets.token_urlsafe(32)
    entry = {"name": name, "hash": _digest(token), "may": may, "types": types, "expires": expires}
    try:
        return token, msgspec.convert(entry, TokenEntry)
    except msgspec.ValidationError as error:
        raise ConfigError(f"the token is invalid: {error}") from None


def read_tokens(path: str | os.PathLike[str]) -> tuple[TokenEntry, ...]:
    """Return the entries of a file of tokens.

    Raises:
        ConfigError: the file cannot be read, or is not a file of tokens.
    """
    return configs.load(Path(path), TokenFile).tokens


def add_token(path: str | os.PathLike[str], entry: TokenEntry) -> None:
    """Add an entry to a file of tokens. A new file is readable only for this user.

    Raises:
        ConfigError: the existing file is not a file of tokens.
        OSError: the file cannot be written.
    """
    file = Path(path)
    _write(file, (*(read_tokens(file) if file.exists() else ()), entry))


def revoke_tokens(path: str | os.PathLike[str], name: str, hash: str = "") -> list[TokenEntry]:
    """Remove the entries of a name from a file of tokens.

    Args:
        hash: only the entry whose hash begins with this text, with or without ``sha256:``.

    Returns:
        The removed entries. If there are none, the file is not written.

    Raises:
        ConfigError: the file cannot be read, or is not a file of tokens.
        OSError: the file cannot be written.
    """
    file, wanted = Path(path), hash.removeprefix("sha256:")
    entries = read_tokens(file)
    gone = [entry for entry in entries if entry.name == name and entry.hash.removeprefix("sha256:").startswith(wanted)]
    if gone:
        _write(file, [entry for entry in entries if entry not in gone])
    return gone


def _write(file: Path, entries: Sequence[TokenEntry]) -> None:
    is_there = file.exists()
    data = msgspec.json.format(msgspec.json.encode(TokenFile(tokens=tuple(entries))), indent=2) + b"\n"
    replace_file(file, data, file.stat().st_mode & 0o777 if is_there else 0o600, syncs_folder=False)
