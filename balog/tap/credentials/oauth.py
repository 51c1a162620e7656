"""OAuth's refresh tokens, and where the next one is kept."""

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
from balog.tap.patterns.pausing import cancelled_by

__all__ = ["RefreshToken", "write_back"]

_Result = TypeVar("_Result")


class RefreshToken:
    """Asks an OAuth server for access tokens by a refresh token (RFC 6749, 6); give it to ``periodic``.

    Many servers give a new refresh token each time, and take the old one no longer: what is not written down then is
    lost, and a person has to log in again. So it is written back into the config before anything else is done, and
    also when a signal ends the run while the server is asked.

    ::

        token = periodic(RefreshToken(url, id, secret, config["refresh_token"], config_path="config.json"))

    Args:
        url: of the token endpoint.
        client_id: of the application.
        client_secret: of the application.
        refresh_token: the first one.
        config_path: the JSON file into which a new one is written; None writes nothing, and says so with a WARNING
            when one was given.
        key: its name in the file.
        more: further fields of the request, such as ``scope``.
        client: asks; one of its own, without headers, if None.
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
        """Ask; give the access token, with its seconds when the server says them.

        Raises:
            SourceError: the server refuses, or answers something else; its own word for why (``invalid_grant``) is
                said, no credential is.
            ConfigError: the new refresh token cannot be written.
        """
        return self._ask() if self._config_path is None else _to_the_end(self._ask)

    def __repr__(self) -> str:
        return f"<RefreshToken at {self._client!r}>"

    def _ask(self) -> Granted | str:
        form = {**self._fields, "refresh_token": self._refresh_token}
        answer = self._client.post(form=form, endpoint="token", allow=(400, 401))
        said = answer.json()
        if not isinstance(said, dict):
            raise SourceError("the token endpoint answered what is no object")
        if answer.status != 200:
            why = said.get("error")
            named = why if isinstance(why, str) and why.replace("_", "").isalnum() and len(why) < 60 else "no reason"
            raise SourceError(f"the token endpoint answered {named}: it does not take the refresh token")
        access, renewed, seconds = said.get("access_token"), said.get("refresh_token"), said.get("expires_in")
        if not isinstance(access, str) or not access:
            raise SourceError("the token endpoint answered without an access_token")
        if isinstance(renewed, str) and renewed and renewed != self._refresh_token:
            self._keep(renewed)
        if isinstance(seconds, str) and seconds.isdecimal():  # as some servers write it
            seconds = int(seconds)
        return Granted(access, seconds) if isinstance(seconds, (int, float)) and seconds > 0 else access

    def _keep(self, renewed: str) -> None:
        self._refresh_token = renewed
        if self._config_path is not None:
            write_back(self._config_path, self._key, renewed)
        else:
            balog.get_logger("balog.tap.credentials").warning(
                "the source gave a new refresh token, and nothing says where to keep it: the next run may have to log "
                "in again; give config_path"
            )


def _to_the_end(function: Callable[[], _Result]) -> _Result:
    """Call a function where no signal interrupts it; when the run ends, only its waits for a retry are cut short.

    Signals become exceptions in the main thread; so it runs in another, which the interpreter waits for at its end.
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
    """Set one field of a JSON file, whole or not at all; the file can then be read by its owner alone (0600).

    A link stays one: what it leads to is written. Who writes at the same time by this function waits.

    Raises:
        ConfigError: it cannot be read or written, or holds no JSON object.
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
        data = _with(place, os.fspath(path), key, value)
        try:
            _replace(place, data)
        except OSError as error:
            reason = f"the new credential cannot be written: {error.strerror}"
            raise ConfigError(reason, os.fspath(path)) from None
    finally:
        os.close(folder)


def _with(place: str, said: str, key: str, value: Any) -> bytes:
    try:
        with open(place, "rb") as file:
            # Values are left as they are written: a whole number of 20 digits is none of msgspec's.
            held = msgspec.json.decode(file.read(), type=dict[str, msgspec.Raw])
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", said) from None
    except msgspec.DecodeError:
        raise ConfigError("is no JSON object; the new credential was not written into it", said) from None
    held[key] = msgspec.Raw(msgspec.json.encode(value))
    return msgspec.json.format(msgspec.json.encode(held), indent=2) + b"\n"


def _replace(place: str, data: bytes) -> None:
    from balog.storage.local_files import replacing

    before = os.stat(place)
    with replacing(Path(place), 0o600) as file:
        os.fchmod(file.fileno(), 0o600)
        with suppress(OSError):  # root alone may give a file away
            os.fchown(file.fileno(), before.st_uid, before.st_gid)
        file.write(data)
