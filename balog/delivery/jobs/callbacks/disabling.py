"""Callbacks whose endpoints answered 410: a file each, so that they stay disabled over a restart and everywhere."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from balog.delivery.document import Callback
from balog.errors import ConfigError
from balog.storage import StorageError, open_storage
from balog.topics import local_folder

__all__ = ["Disabled", "DisabledCallbacks", "digest", "place_of"]

_MAX_BYTES = 64 * 1024
_FOLDER = ".callbacks"
_PREFIX, _SUFFIX = "callback-", ".json"  # a callback's name may begin with what hides a file


class Disabled(Struct, frozen=True):
    """That a callback is disabled; ``config`` is the digest of the one that was, ``since`` seconds since the epoch."""

    name: str
    config: str
    since: float
    reason: str


class DisabledCallbacks:
    """The files at one place; for one thread.

    Args:
        place: a folder, or a URL that ``balog.storage`` opens.
        options: of the URL's file system.

    Raises:
        ConfigError: a place that can't be.
        MissingExtraError: its packages are not installed.
    """

    def __init__(self, place: str, options: Mapping[str, Any] | None = None) -> None:
        self._storage = open_storage(place, options, field="state")

    def get(self, name: str) -> Disabled | None:
        """Give what is known of a callback; None when it is not disabled.

        Raises:
            StorageError: the place can't be read.
        """
        data = self._storage.read(_file(name), _MAX_BYTES)
        if data is None:
            return None
        try:
            return msgspec.json.decode(data, type=Disabled)
        except (msgspec.DecodeError, ValueError):
            return None  # half of a file, or somebody else's

    def all(self) -> list[Disabled]:
        """Give all that are disabled, by name.

        Raises:
            StorageError: the place can't be read.
        """
        try:
            files = [name for name, _ in self._storage.files()]
        except StorageError:
            # A place to which nothing was written is not there; one that can't be reached says so again.
            if self._storage.size(_file("none")) is not None:
                raise
            return []
        names = [name.removeprefix(_PREFIX).removesuffix(_SUFFIX) for name in files if name.endswith(_SUFFIX)]
        return [found for name in names if (found := self.get(name)) is not None]

    def put(self, disabled: Disabled) -> None:
        """Remember one.

        Raises:
            StorageError: the place can't be written.
        """
        self._storage.write(msgspec.json.encode(disabled), _file(disabled.name))

    def remove(self, name: str) -> bool:
        """Let a callback be enabled again; False when it was not disabled.

        Raises:
            StorageError: the place can't be written.
        """
        was_there = self._storage.size(_file(name)) is not None
        self._storage.remove(_file(name))
        return was_there

    def close(self) -> None:
        """Close the connection, if there is one."""
        self._storage.close()


def digest(config: Callback) -> str:
    """Give what a changed config differs in: who changed it wants it tried again. Nothing secret is in it."""
    return hashlib.sha256(msgspec.json.encode(config, order="sorted")).hexdigest()[:32]


def place_of(control: str | None, home_url: str) -> str:
    """Give the place that belongs to a service: beside the versions of its document, where it has such a place.

    Without one it is a hidden folder in the home of the topics for ``local:PATH``, else
    ``$XDG_STATE_HOME/balog/callbacks/`` (``~/.local/state`` when that is not set): known to the services of this user
    on this machine, no further.

    Raises:
        ConfigError: this user has no home.
    """
    if control is not None:
        return f"{control.rstrip('/')}/callbacks"
    if (folder := local_folder(home_url)) is not None:
        return str(folder / _FOLDER)
    state = os.environ.get("XDG_STATE_HOME", "")
    try:
        states = Path(state) if os.path.isabs(state) else Path("~/.local/state").expanduser()
    except RuntimeError:
        raise ConfigError("no place for what is disabled: set XDG_STATE_HOME or HOME, or give control") from None
    return str(states / "balog" / "callbacks" / hashlib.sha256(home_url.encode()).hexdigest()[:16])


def _file(name: str) -> str:
    return f"{_PREFIX}{name}{_SUFFIX}"
