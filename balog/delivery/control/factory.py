"""From a place in a config or on a command line to the versions there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from balog.delivery.control.folder import FolderControl
from balog.delivery.control.store import Control
from balog.storage import open_storage

__all__ = ["open_control", "open_version_store"]


def open_control(place: str, options: Mapping[str, Any] | None = None, token: str | None = None) -> Control:
    """Open a place of versions; nothing is connected yet.

    Args:
        place: a folder, ``s3://BUCKET/PATH``, or a service, ``http(s)://HOST:PORT``.
        options: what the store of a URL takes, as in a config.
        token: of a service, the bearer token; it may ``configure``, or ``read`` to look.

    Raises:
        ConfigError: not a place, or one that takes no options or token.
        MissingExtraError: the packages for this kind of place are not installed.
    """
    if place.startswith(("http://", "https://")):
        from balog.delivery.control.remote import RemoteControl

        return RemoteControl(place, token)
    return open_version_store(place, options)


def open_version_store(place: str, options: Mapping[str, Any] | None = None) -> FolderControl:
    """Open a folder or an object store, which a service can poll and report to.

    Raises:
        ConfigError: see ``open_control``.
    """
    return FolderControl(open_storage(place, options, "control"))
