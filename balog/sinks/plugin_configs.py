"""Sinks of other packages, by entry points of the group ``balog.sinks``."""

from __future__ import annotations

from typing import Any, get_args

from msgspec import Struct

from balog import plugins
from balog.errors import BalogError, complain
from balog.sinks.base import SinkOptions

__all__ = ["with_plugins"]


def with_plugins(builtin: Any) -> Any:
    """Return a union of sink configs together with those of installed packages.

    An entry point is left out, with a line on stderr, if it can't be imported or is not the config of a sink.
    """
    known = {config.__struct_config__.tag for config in get_args(builtin)}
    union = builtin
    for name in plugins.names("balog.sinks"):
        if name in known:
            continue
        try:
            union = union | _load(name)
        except BalogError as error:
            complain(str(error))
    return union


def _load(name: str) -> type[Struct]:
    config = plugins.load("balog.sinks", name)
    package = plugins.package_of("balog.sinks", name)
    if not (isinstance(config, type) and issubclass(config, SinkOptions) and callable(getattr(config, "build", None))):
        raise BalogError(f"plug-in {name!r} of balog.sinks, package {package}, is not a SinkOptions with build()")
    options = config.__struct_config__
    if (options.tag_field, options.tag) != ("type", name):
        raise BalogError(
            f'plug-in {name!r} of balog.sinks, package {package}, must have tag_field="type" and tag="{name}"'
        )
    return config
