"""Opens the version store that a config or a command line names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from balog.delivery.control.folder import FolderControl
from balog.delivery.control.store import Control
from balog.storage import open_storage

__all__ = ["open_control", "open_version_store"]


def open_control(place: str, options: Mapping[str, Any] | None = None, token: str | None = None) -> Control:
    """Open a version store, without connecting yet.

    Args:
        place: a folder, ``s3://BUCKET/PATH``, or a service, ``http(s)://HOST:PORT``.
        options: options of the URL's store, as in a config.
        token: bearer token of a service, with the right to ``configure``, or to ``read`` only.

    Raises:
        ConfigError: the place is not valid, or takes no options or token.
        MissingExtraError: packages for the place are not installed.
    """
    if place.startswith(("http://", "https://")):
        from balog.delivery.control.remote import RemoteControl

        return RemoteControl(place, token)
    return open_version_store(place, options)


def open_version_store(place: str, options: Mapping[str, Any] | None = None) -> FolderControl:
    """Open a version store in a folder or an object store.

    Raises:
        ConfigError: see ``open_control``.
    """
    return FolderControl(open_storage(place, options, "control"))
