"""Options that name a registry."""

from __future__ import annotations

from collections.abc import Callable
from typing import IO, Any, TypeVar

import click

from balog import config as configs
from balog.registry import Registry

__all__ = ["name_of", "open_named", "registry_options"]

Command = TypeVar("Command", bound=Callable[..., Any])


def registry_options(command: Command) -> Command:
    """Add ``--registry`` and ``--options``; see ``open_named``."""
    place = click.option(
        "--registry",
        "place",
        envvar="BALOG_REGISTRY",
        metavar="PLACE",
        help="Registry: a folder, s3://… or http(s)://… of a service; $BALOG_REGISTRY.  [default: balog's own types]",
    )
    options = click.option(
        "--options", metavar="FILE", help='JSON file with options of the store, such as {"endpoint_url": …}.'
    )
    return place(options(command))


def open_named(place: str | None, options: str | None) -> Registry:
    """Open the registry that the options name; a service gets the bearer token of ``$BALOG_TOKEN``.

    Raises:
        ConfigError, MissingExtraError: as ``open_any_registry``.
    """
    from balog.delivery.remote_registry import open_any_registry

    return open_any_registry(place, None if options is None else configs.load(options, dict[str, Any]))


def name_of(file: IO[bytes]) -> str:
    """Return the name of a file for messages."""
    return getattr(file, "name", "<stdin>")
