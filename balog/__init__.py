"""Structured event logging and observability for data pipelines."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from balog.common.lazy_exports import deferred

if TYPE_CHECKING:
    from balog import consumers as consumers
    from balog import engines as engines
    from balog.consumers.consumer import consumer_config
    from balog.event import Event
    from balog.log import metrics as metrics
    from balog.log.configuration import configure, flush, set_level
    from balog.log.context import bound
    from balog.log.logger import emit, get_logger
    from balog.log.scope import flushing
    from balog.log.values.validation import declare

    __version__: str

__all__ = [
    "Event",
    "__version__",
    "bound",
    "configure",
    "consumer_config",
    "declare",
    "emit",
    "flush",
    "flushing",
    "get_logger",
    "set_level",
]

# Imported when they are asked for: `balog broker` needs no structlog, whose import takes longer than all else.
_MODULES = {
    "Event": "balog.event",
    "bound": "balog.log.context",
    "configure": "balog.log.configuration",
    "consumer_config": "balog.consumers.consumer",
    "declare": "balog.log.values.validation",
    "emit": "balog.log.logger",
    "flush": "balog.log.configuration",
    "flushing": "balog.log.scope",
    "get_logger": "balog.log.logger",
    "set_level": "balog.log.configuration",
}


_import = deferred(globals(), _MODULES)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from balog.common.distribution import installed_version

        return installed_version()
    if name in ("consumers", "engines"):
        return import_module(f"balog.{name}")
    if name == "metrics":
        return import_module("balog.log.metrics")
    return _import(name)


def __dir__() -> list[str]:
    return sorted(globals().keys() | set(__all__))
