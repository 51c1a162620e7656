"""OAuth refresh tokens, and where the next one is stored."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import copy_context
from pathlib import Path
from typing import Any, TypeVar

import msgspec

import balog
from balog.errors import ConfigError
from balog.signals import signals_for_main_thread
from balog.tap.credentials.credential import Granted
from balog.tap.errors import SourceError
from balog.tap.http.client import Client
from balog.tap.patterns.concurrency import cancelled_by

_Result = TypeVar("_Result")


class RefreshToken:
    """Fetches access tokens with a refresh token (RFC 6749, 6), for ``periodic``.

    Many servers return a new refresh token each time, and reject the old one. If the new one is lost, a person has to
    log in again. So it is written to the config file first, also if a signal ends the run during the request.

    ::

        token = periodic(RefreshToken(url, id, secret, config["refresh_token"], config_path="config.json"))

    Args:
        url: the token endpoint.
        client_id: the application's id.
        client_secret: the application's secret.
        refresh_token: the first refresh token.
        config_path: the JSON file for new refresh tokens; None stores none, and logs a WARNING if the server returns
            one.
        key: the name of the token in the file.
        more: further fields of the request, such as ``scope``.
        client: makes the requests; None makes one without headers.
    """

    def __init__(
        self,
        url: str,
        client_id: str,
        client_secret: str,
        refresh_token: str,
        *,
        config_path: str | os.PathLike[str] | None = None,
        key: str = "refresh_token",
        more: Mapping[str, str] | None = None,
        client: Client | None = None,
    ) -> None:
        self._client = client or Client(url)
        self._fields = {
            **(more or {}),
            "grant_type": "refresh_token",
            "client_id": client_id,
            "client_secret": client_secret,
        }
        self._refresh_token = refresh_token
        self._config_path = config_path
        self._key = key
        self.__name__ = "refresh_token"

    def __call__(self) -> Granted | str:
        """Fetch and return an access token, with its lifetime if the server has one.

        Raises:
            SourceError: the server rejects the refresh token, or its answer is invalid. The message has the server's
                error code (``invalid_grant``) and no credential.
            ConfigError: the new refresh token cannot be written.
        """
        return self._fetch() if self._config_path is None else _uninterrupted(self._fetch)

    def __repr__(self) -> str:
        return f"<RefreshToken at {self._client!r}>"

    def _fetch(self) -> Granted | str:
        form = {**self._fields, "refresh_token": self._refresh_token}
        answer = self._client.post(form=form, endpoint="token", allow=(400, 401))
        grant = answer.json()
        if not isinstance(grant, dict):
            raise SourceError("the token endpoint did not answer with a JSON object")
        if answer.status != 200:
            why = grant.get("error")
            named = why if isinstance(why, str) and why.replace("_", "").isalnum() and len(why) < 60 else "no reason"
            raise SourceError(f"the token endpoint answered {named}: it rejected the refresh token")
        access, renewed, seconds = grant.get("access_token"), grant.get("refresh_token"), grant.get("expires_in")
        if not isinstance(access, str) or not access:
            raise SourceError("the token endpoint answered without an access_token")
        if isinstance(renewed, str) and renewed and renewed != self._refresh_token:
            self._store(renewed)
        if isinstance(seconds, str) and seconds.isdecimal():  # some servers write a text
            seconds = int(seconds)
        return Granted(access, seconds) if isinstance(seconds, (int, float)) and seconds > 0 else access

    def _store(self, renewed: str) -> None:
        self._refresh_token = renewed
        if self._config_path is not None:
            write_back(self._config_path, self._key, renewed)
        else:
            balog.get_logger("balog.tap.credentials").warning(
                "the server returned a new refresh token, which is not stored: the next run may have to log in again; "
                "set config_path"
            )


def _uninterrupted(function: Callable[[], _Result]) -> _Result:
    """Call a function that signals do not interrupt; when the run ends, only its waits for a retry are cancelled.

    Signals become exceptions in the main thread, so it runs in another, which the interpreter joins at exit.
    """
    stop, is_done = threading.Event(), threading.Event()
    results: list[_Result] = []
    errors: list[BaseException] = []
    context = copy_context()

    def work() -> None:
        cancelled_by(stop)
        try:
            results.append(context.run(function))
        except BaseException as error:
            errors.append(error)
        finally:
            is_done.set()

    with signals_for_main_thread():
        threading.Thread(target=work, name="balog tap credential", daemon=False).start()
    try:
        is_done.wait()
    except BaseException:
        stop.set()
        raise
    if errors:
        raise errors[0]
    return results[0]


def write_back(path: str | os.PathLike[str], key: str, value: Any) -> None:
    """Set one field of a JSON file atomically; afterwards only its owner can read the file (0600).

    A symbolic link is followed. Concurrent calls wait for each other.

    Raises:
        ConfigError: the file cannot be read or written, or has no JSON object.
    """
    from balog.storage.local_files import lock

    place = os.path.realpath(path)
    try:
        folder = os.open(os.path.dirname(place), os.O_RDONLY)
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", os.fspath(path)) from None
    try:
        with suppress(OSError):  # a file system without locks
            lock(folder)  # the file itself is another one after each writing
        data = _with_field(place, os.fspath(path), key, value)
        try:
            _replace(place, data)
        except OSError as error:
            reason = f"the new credential cannot be written: {error.strerror}"
            raise ConfigError(reason, os.fspath(path)) from None
    finally:
        os.close(folder)


def _with_field(place: str, source: str, key: str, value: Any) -> bytes:
    try:
        with open(place, "rb") as file:
            # Raw values keep numbers that msgspec cannot decode, such as integers of 20 digits.
            fields = msgspec.json.decode(file.read(), type=dict[str, msgspec.Raw])
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", source) from None
    except msgspec.DecodeError:
        raise ConfigError("is not a JSON object; the new credential was not written to it", source) from None
    fields[key] = msgspec.Raw(msgspec.json.encode(value))
    return msgspec.json.format(msgspec.json.encode(fields), indent=2) + b"\n"


def _replace(place: str, data: bytes) -> None:
    from balog.storage.local_files import replacing

    owner = os.stat(place)
    with replacing(Path(place), 0o600) as file:
        os.fchmod(file.fileno(), 0o600)
        with suppress(OSError):  # only root can change the owner
            os.fchown(file.fileno(), owner.st_uid, owner.st_gid)
        file.write(data)
