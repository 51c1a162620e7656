"""Files that store refresh tokens: the tap's config, or a file of their own."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from contextvars import copy_context
from hashlib import sha256
from pathlib import Path
from typing import IO, TypeVar

import msgspec

from balog.common.errors import ConfigError
from balog.common.signals import signals_for_main_thread
from balog.tap.errors import SourceError
from balog.tap.patterns.concurrency import cancelled_by, pause

_Result = TypeVar("_Result")
_Fields = dict[str, msgspec.Raw]

_TOKENS = "refresh_tokens"
_MAX_TOKENS = 1000
_ROOM = 64 * 1024  # more than a token and its escapes need
_WAIT_SECONDS = 300.0


class TokenStore:
    """A JSON file with refresh tokens, which only its owner can read (0600).

    It is locked from the time at which a token is read until the next one is on disk, so runs that share a token use
    it one after another. A file that cannot be written is an error before the token is used.

    Args:
        path: the file. A symbolic link is followed.
        key: the field of the tap's config file; "" for a file of tokens alone, which is created when missing.
    """

    def __init__(self, path: str | os.PathLike[str], key: str = "") -> None:
        self._path = path
        self._key = key

    def exchange(self, identity: str, first: str, use: Callable[[str], tuple[_Result, str]]) -> _Result:
        """Call a function with the stored token, and store the token that it returns.

        A signal does not interrupt it: when the run ends, only its waits are cancelled.

        Args:
            identity: what the token belongs to: in a file of tokens alone, each identity has one.
            first: the token to use while none is stored.
            use: receives a token; returns a result, and the token to store, or "" for none.

        Raises:
            ConfigError: the file cannot be read or written, or is not a JSON object.
            SourceError: another process has locked the file for minutes.
        """
        return _uninterrupted(lambda: self._exchange(sha256(identity.encode()).hexdigest()[:32], first, use))

    def _exchange(self, name: str, first: str, use: Callable[[str], tuple[_Result, str]]) -> _Result:
        path, source = os.path.realpath(self._path), os.fspath(self._path)
        results: list[_Result] = []
        with _locked(path, source):
            fields = _read(path, source, is_optional=not self._key)
            stored = self._stored(fields, name)
            try:
                with suppress(_UnchangedError), _replacement(path) as file:
                    result, renewed = use(stored or first)
                    results.append(result)
                    if not renewed or renewed == stored:
                        raise _UnchangedError
                    self._put(fields, name, renewed)
                    file.write(_encoded(fields))
                    file.truncate()
            except OSError as error:
                raise ConfigError(f"a new credential cannot be written: {error.strerror}", source) from None
        return results[0]

    def _stored(self, fields: _Fields, name: str) -> str:
        """Return the stored token; "" if there is none, as where a config names an environment variable."""
        value = msgspec.json.decode(fields.get(self._key or _TOKENS, msgspec.Raw(b"null")))
        if not self._key:
            value = value.get(name) if isinstance(value, dict) else None
        return value if isinstance(value, str) else ""

    def _put(self, fields: _Fields, name: str, token: str) -> None:
        if self._key:
            fields[self._key] = msgspec.Raw(msgspec.json.encode(token))
            return
        stored = msgspec.json.decode(fields.get(_TOKENS, msgspec.Raw(b"{}")))
        tokens = stored if isinstance(stored, dict) else {}
        tokens.pop(name, None)
        tokens[name] = token  # the last one used, at the end
        fields[_TOKENS] = msgspec.Raw(msgspec.json.encode(dict([*tokens.items()][-_MAX_TOKENS:])))


class _UnchangedError(Exception):
    """Leaves the block of a replacement without a new file."""


@contextmanager
def _locked(path: str, source: str) -> Iterator[None]:
    """Lock the folder of a file; the file itself is another one after each writing."""
    from balog.common.storage.local_files import lock

    try:
        folder = os.open(os.path.dirname(path), os.O_RDONLY)
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", source) from None
    try:
        until = time.monotonic() + _WAIT_SECONDS
        with suppress(OSError):  # a file system without locks
            while not lock(folder, wait=False):
                if time.monotonic() > until:
                    raise SourceError(f"another process has locked the folder of {source} for minutes", retryable=True)
                pause(0.05)
        yield
    finally:
        os.close(folder)


def _read(path: str, source: str, *, is_optional: bool) -> _Fields:
    try:
        with open(path, "rb") as file:
            # Raw values keep numbers that msgspec cannot decode, such as integers of 20 digits.
            return msgspec.json.decode(file.read(), type=_Fields)
    except OSError as error:
        if is_optional and isinstance(error, FileNotFoundError):
            return {}
        raise ConfigError(f"cannot be read: {error.strerror}", source) from None
    except msgspec.DecodeError:
        raise ConfigError("is not a JSON object; no credential can be stored in it", source) from None


def _encoded(fields: _Fields) -> bytes:
    return msgspec.json.format(msgspec.json.encode(fields), indent=2) + b"\n"


@contextmanager
def _replacement(path: str) -> Iterator[IO[bytes]]:
    """Open a new file that replaces the one at a path when the block ends, with room for its bytes on the disk."""
    from balog.common.storage.local_files import replacing

    size, owner = 0, None
    with suppress(FileNotFoundError):
        owner = os.stat(path)
        size = owner.st_size
    with replacing(Path(path), 0o600) as file:
        os.fchmod(file.fileno(), 0o600)
        if owner is not None:
            with suppress(OSError):  # only root can change the owner
                os.fchown(file.fileno(), owner.st_uid, owner.st_gid)
        os.posix_fallocate(file.fileno(), 0, size + _ROOM)
        yield file


def _uninterrupted(function: Callable[[], _Result]) -> _Result:
    """Call a function that signals do not interrupt; when the run ends, only its waits for a retry are cancelled.

    Signals become exceptions in the main thread, so it runs in another, which the interpreter joins at exit.
    """
    stop = threading.Event()
    outcome: Future[_Result] = Future()
    context = copy_context()

    def work() -> None:
        cancelled_by(stop)
        try:
            outcome.set_result(context.run(function))
        except BaseException as error:
            outcome.set_exception(error)

    with signals_for_main_thread():
        threading.Thread(target=work, name="balog tap credential", daemon=False).start()
    try:
        return outcome.result()
    except BaseException:
        stop.set()
        raise
