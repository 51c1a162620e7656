"""Structured event logging and observability for data pipelines."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from balog.lazy_exports import deferred

if TYPE_CHECKING:
    from balog import consumers as consumers
    from balog import engines as engines
    from balog.consumers.consumer import consumer_config
    from balog.event import Event
    from balog.logger import emit, get_logger
    from balog.recording.configuration import configure, flush, set_level
    from balog.recording.context import bound
    from balog.recording.scope import flushing
    from balog.recording.validation import declare

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
    "bound": "balog.recording.context",
    "configure": "balog.recording.configuration",
    "consumer_config": "balog.consumers.consumer",
    "declare": "balog.recording.validation",
    "emit": "balog.logger",
    "flush": "balog.recording.configuration",
    "flushing": "balog.recording.scope",
    "get_logger": "balog.logger",
    "set_level": "balog.recording.configuration",
}


_import = deferred(globals(), _MODULES)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from balog.distribution import installed_version

        return installed_version()
    if name in ("consumers", "engines"):
        return import_module(f"balog.{name}")
    return _import(name)


def __dir__() -> list[str]:
    return sorted(globals().keys() | set(__all__))
