"""Calls of hooks: only of overridden methods, and without letting an exception through."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from balog.consumers.error_line import error_line
from balog.consumers.hooks import Hook

__all__ = ["HookCalls"]

log = logging.getLogger("balog.consumers")

Methods = tuple[Callable[..., Any], ...]


class HookCalls:
    """The overridden methods of several hooks by name, so that an engine without hooks pays only for an empty tuple.

    Args:
        hooks: called in this order.
    """

    def __init__(self, hooks: Sequence[Hook]) -> None:
        def overridden(name: str) -> Methods:
            inherited = getattr(Hook, name)
            methods = [(getattr(hook, name, None), getattr(type(hook), name, None)) for hook in hooks]
            return tuple(bound for bound, found in methods if callable(bound) and found is not inherited)

        self.started = overridden("started")
        self.stopped = overridden("stopped")
        self.tick = overridden("tick")
        self.unreachable = overridden("unreachable")
        self.before_receive = overridden("before_receive")
        self.after_receive = overridden("after_receive")
        self.before_process = overridden("before_process")
        self.after_process = overridden("after_process")
        self.before_ack = overridden("before_ack")
        self.after_ack = overridden("after_ack")
        self.retried = overridden("retried")
        self.dead = overridden("dead")
        self.watch_calls = bool(self.before_process or self.after_process or self.retried)
        self._reported: set[Callable[..., Any]] = set()

    def call(self, methods: Methods, *arguments: Any) -> None:
        """Call each method; an exception is logged once for that method and otherwise ignored."""
        for method in methods:
            try:
                method(*arguments)
            except BaseException as error:
                if method not in self._reported:
                    self._reported.add(method)
                    name = getattr(method, "__qualname__", repr(method))
                    log.warning("hook %s failed, now and maybe again: %s", name, error_line(error))
