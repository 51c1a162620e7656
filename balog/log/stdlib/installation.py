"""Set up a process whose log records all become events."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from balog.log.outputs.calls import ThreadBlock
from balog.log.stdlib.capture import capture_uncaught, capture_warnings, replace_hook
from balog.log.stdlib.handler import EventHandler


def install(root_level: int | str | None = "INFO", *, replace: bool = True) -> ExitStack:
    """Turn every log record, warning and uncaught exception of this process into an event.

    A second call adds no second handler.

    Args:
        root_level: the root logger's new level; None leaves it.
        replace: remove the root logger's other handlers, which would write every line a second time.

    Returns:
        A stack that undoes it, with ``close()`` or at the end of a ``with`` block.
    """
    root = logging.getLogger()
    stack = ExitStack()
    before = list(root.handlers)
    if not any(isinstance(handler, EventHandler) for handler in before):
        handler = EventHandler()
        root.addHandler(handler)
        stack.callback(root.removeHandler, handler)
    if replace:
        for other in before:
            if not isinstance(other, EventHandler):
                root.removeHandler(other)
                stack.callback(root.addHandler, other)
    if root_level is not None:
        stack.callback(root.setLevel, root.level)
        root.setLevel(root_level)
    stack.enter_context(keep_through_singer_python())
    stack.enter_context(capture_warnings())
    stack.enter_context(capture_uncaught())
    return stack


def keep_through_singer_python() -> ExitStack:
    """Keep the root logger's handlers when a tap calls ``singer.get_logger()``.

    singer-python loads the ``logging.conf`` of its own package at each call, which removes every handler. This patches
    ``logging.config.fileConfig`` to skip that file; it still loads any other file.

    Returns:
        A stack that undoes it, with ``close()`` or at the end of a ``with`` block.
    """
    import logging.config as stdlib

    return replace_hook(stdlib, "fileConfig", _load_unless_singer_python, ThreadBlock())


def _load_unless_singer_python(load: Callable[..., None], fname: Any, *args: Any, **options: Any) -> None:
    if not _is_of_singer_python(fname):
        load(fname, *args, **options)


def _is_of_singer_python(path: Any) -> bool:
    return isinstance(path, (str, os.PathLike)) and str(path).endswith(os.path.join("singer", "logging.conf"))
