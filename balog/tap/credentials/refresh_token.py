"""OAuth refresh tokens, also those that the server replaces each time, and the files that store them."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import copy_context
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, TypeVar

import msgspec

import balog
from balog.common.errors import ConfigError
from balog.common.signals import signals_for_main_thread
from balog.tap.credentials.credential import Granted
from balog.tap.credentials.grant import TokenGrant
from balog.tap.errors import SourceError, TapError
from balog.tap.patterns.concurrency import cancelled_by, pause


class RefreshToken(TokenGrant):
    """Fetches access tokens with a refresh token (RFC 6749, 6).

    Many servers return a new refresh token each time, and reject the old one. If the new one is lost, a person has to
    log in again. So it is on disk before the access token is used, also if a signal ends the run during the request.

    ::

        auth = bearer(RefreshToken(url, id, secret, config["refresh_token"], token_file=config["token_file"]))

    Args:
        refresh_token: the first refresh token.
        config_path: the tap's config file, in which new refresh tokens replace the first. A token in the file takes
            precedence over ``refresh_token``.
        key: the name of the token in that file.
        token_file: a JSON file for new refresh tokens alone, for configs that are generated or read-only. It is
            created when missing. A new ``refresh_token`` in the config takes precedence over what it replaced.
        options: those of ``TokenGrant``.

    Raises:
        TapError: both files.
    """

    name = "refresh_token"
    advice = "it rejected the refresh token; sign in again, and set the new one in the config"
    is_repeatable = False  # if a response is lost, the server may have replaced the token

    def __init__(
        self,
        url: str,
        client_id: str,
        client_secret: str,
        refresh_token: str,
        *,
        config_path: str | os.PathLike[str] | None = None,
        key: str = "refresh_token",
        token_file: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(url, client_id, client_secret, **options)
        if config_path is not None and token_file is not None:
            raise TapError("RefreshToken(…, config_path=…, token_file=…): expected one file for new refresh tokens")
        self._first = refresh_token
        self._identity = f"{url}\n{client_id}\n{refresh_token}"
        path, key = (token_file, "") if config_path is None else (config_path, key)
        self._store = MemoryStore() if path is None else TokenStore(path, key)

    def __call__(self) -> Granted | str:
        """See ``TokenGrant``.

        Raises:
            ConfigError: the new refresh token cannot be written; reported before the old one is used.
        """
        return self._store.exchange(self._identity, self._first, self._use)

    def _use(self, token: str) -> tuple[Granted | str, str]:
        """Use a refresh token; return the access token, and the new refresh token or ""."""
        answer = self._token({"grant_type": "refresh_token", "refresh_token": token})
        return answer.access, answer.refresh_token if answer.refresh_token != token else ""


class MemoryStore:
    """A store that lasts as long as the process, and logs a WARNING when a token would have to be stored."""

    def __init__(self) -> None:
        self._token = ""

    def exchange(self, identity: str, first: str, use: Callable[[str], tuple[Granted | str, str]]) -> Granted | str:
        """See ``TokenStore``."""
        result, renewed = use(self._token or first)
        if renewed:
            self._token = renewed
            balog.get_logger("balog.tap.credentials").warning(
                "the server returned a new refresh token, which is not stored: the next run may have to log in again; "
                "set token_file or config_path"
            )
        return result


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
    from concurrent.futures import ThreadPoolExecutor  # slow to import

    stop, context = threading.Event(), copy_context()

    def work() -> _Result:
        cancelled_by(stop)
        return context.run(function)

    executor = ThreadPoolExecutor(1, "balog tap credential")
    with signals_for_main_thread():
        outcome = executor.submit(work)
    executor.shutdown(wait=False)
    try:
        return outcome.result()
    except BaseException:
        stop.set()
        raise
