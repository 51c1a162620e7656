"""The switch of a callback: an endpoint that answered 410 gets no further request until the callback is enabled.

Disabled callbacks are stored in a file each, shared by services and kept over restarts.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from balog.delivery.document import Callback
from balog.errors import BalogError
from balog.local_path import state_folder
from balog.logger import get_logger
from balog.outbound.notices import ThrottledNotices
from balog.storage import StorageError, open_storage
from balog.topics import local_folder

CHECK_WHEN_OFF, CHECK_WHEN_ON = 2.0, 30.0
"""Seconds between checks of the stored state, which other services and ``balog callbacks enable`` change."""

_MAX_BYTES = 64 * 1024
_FOLDER = ".callbacks"
_PREFIX, _SUFFIX = "callback-", ".json"  # a callback's name may begin with what hides a file


class Disabled(Struct, frozen=True):
    """A disabled callback.

    Attributes:
        config: the digest of its config, see :func:`digest`.
        since: when it was disabled, in seconds since the epoch.
    """

    name: str
    config: str
    since: float
    reason: str


class DisabledCallbacks:
    """The files of disabled callbacks in one folder. Not thread-safe.

    Args:
        place: a folder, or a URL that ``balog.storage`` opens.
        options: options of the URL's file system.

    Raises:
        ConfigError: an invalid place.
        MissingExtraError: packages for the URL are not installed.
    """

    def __init__(self, place: str, options: Mapping[str, Any] | None = None) -> None:
        self._storage = open_storage(place, options, field="state")

    def get(self, name: str) -> Disabled | None:
        """Return the entry of a callback; None when it is not disabled.

        Raises:
            StorageError: the file can't be read.
        """
        data = self._storage.read(_file(name), _MAX_BYTES)
        if data is None:
            return None
        try:
            return msgspec.json.decode(data, type=Disabled)
        except (msgspec.DecodeError, ValueError):
            return None  # an incomplete file, or another program's

    def all(self) -> list[Disabled]:
        """Return the entries of all disabled callbacks.

        Raises:
            StorageError: the folder can't be read.
        """
        try:
            files = [name for name, _ in self._storage.files()]
        except StorageError:
            # A folder without files may not exist; an unreachable one raises again here.
            if self._storage.size(_file("none")) is not None:
                raise
            return []
        names = [name.removeprefix(_PREFIX).removesuffix(_SUFFIX) for name in files if name.endswith(_SUFFIX)]
        return [found for name in names if (found := self.get(name)) is not None]

    def put(self, disabled: Disabled) -> None:
        """Write the entry of a callback.

        Raises:
            StorageError: the file can't be written.
        """
        self._storage.write(msgspec.json.encode(disabled), _file(disabled.name))

    def remove(self, name: str) -> bool:
        """Remove the entry of a callback, which enables it again; False when it was not disabled.

        Raises:
            StorageError: the file can't be removed.
        """
        was_there = self._storage.size(_file(name)) is not None
        self._storage.remove(_file(name))
        return was_there

    def close(self) -> None:
        """Close the connection, if there is one."""
        self._storage.close()


class Switch:
    """Turned off by the endpoint, and turned on by a changed config or ``balog callbacks enable``. Thread-safe.

    It logs ``disabled`` (ERROR) and ``enabled`` (INFO) to the channel ``balog.delivery.jobs.callbacks``.

    Args:
        config: the callback.
        place: the folder or URL of the stored state.
        options: options of the URL's file system.

    Attributes:
        is_off: whether the callback is disabled.
        error: why it is disabled, and how to enable it; "" otherwise.

    Raises:
        ConfigError: an invalid place.
        MissingExtraError: packages for the place are not installed.
    """

    def __init__(
        self, config: Callback, place: str, notices: ThrottledNotices, options: Mapping[str, Any] | None = None
    ) -> None:
        self.is_off = False
        self.error = ""
        self._name = config.name
        self._digest = digest(config)
        self._stored = DisabledCallbacks(place, options)
        self._notices = notices
        self._unsaved: Disabled | None = None
        self._lock = threading.Lock()
        self._checked_at = float("-inf")
        self._log = get_logger("balog.delivery.jobs.callbacks")

    def turn_off(self, reason: str) -> None:
        """Turn it off and store that."""
        with self._lock:
            if not self.is_off:
                self._turn_off(reason)

    def _turn_off(self, reason: str) -> None:
        self._unsaved = Disabled(self._name, self._digest, time.time(), reason)
        self._note_off(reason)
        self._log.error("disabled", callback=self._name, reason=reason)
        self._save()

    def check(self) -> None:
        """Check the stored state if a check is due."""
        now = time.monotonic()
        if now - self._checked_at >= (CHECK_WHEN_OFF if self.is_off else CHECK_WHEN_ON):
            with self._lock:
                self._checked_at = now
                self._check()

    def _check(self) -> None:
        if self._unsaved is not None:
            self._save()
            return
        try:
            found = self._stored.get(self._name)
            if found is not None and found.config != self._digest:
                self._stored.remove(self._name)  # of an earlier config
                found = None
        except BalogError as error:
            if self._notices.is_due("state"):
                self._notices.send(f"{error}; cannot read whether it is disabled, it stays as it is")
            return
        if found is not None and not self.is_off:
            self._note_off(found.reason)
        elif found is None and self.is_off:
            self.is_off, self.error = False, ""
            self._notices.send("is enabled again")
            self._log.info("enabled", callback=self._name)

    def close(self) -> None:
        """Close the connection to the stored state."""
        self._stored.close()

    def _note_off(self, reason: str) -> None:
        self.is_off = True
        self.error = f"{reason}, so it is disabled; see to it, then: balog callbacks enable {self._name}"
        self._notices.send(self.error)

    def _save(self) -> None:
        if self._unsaved is None:
            return
        self._checked_at = time.monotonic()
        try:
            self._stored.put(self._unsaved)
            self._unsaved = None
        except BalogError as error:
            if self._notices.is_due("keeping"):
                self._notices.send(
                    f"{error}; that it is disabled is not kept yet, a restart would ask the endpoint again"
                )


def digest(config: Callback) -> str:
    """Return a hash of a config, without secrets. A callback whose hash changed is tried again."""
    return hashlib.sha256(msgspec.json.encode(config, order="sorted")).hexdigest()[:32]


def place_of(control: str | None, home_url: str) -> str:
    """Return the folder for a service's disabled callbacks: beside the versions of its document if it has ``control``.

    Otherwise it is a hidden folder of the topics' folder for ``local:PATH``, and for other backends one in
    ``$XDG_STATE_HOME/balog/callbacks/`` (``~/.local/state`` when that is not set), shared by the services of this user
    on this machine.

    Raises:
        ConfigError: this user has no home directory.
    """
    if control is not None:
        return f"{control.rstrip('/')}/callbacks"
    if (folder := local_folder(home_url)) is not None:
        return str(folder / _FOLDER)
    folder = state_folder("no place for disabled callbacks: set XDG_STATE_HOME or HOME, or give control")
    return str(folder / "callbacks" / hashlib.sha256(home_url.encode()).hexdigest()[:16])


def _file(name: str) -> str:
    return f"{_PREFIX}{name}{_SUFFIX}"
