"""Calls hooks: only methods that are overridden, and none of them can do harm."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from balog.consumers.hooks import Hook
from balog.consumers.verdicts import describe

__all__ = ["HookCalls"]

log = logging.getLogger("balog.consumers")

Methods = tuple[Callable[..., Any], ...]


class HookCalls:
    """The methods of several hooks by name, so that an engine without hooks pays for an empty tuple.

    Args:
        hooks: asked in this order.
    """

    def __init__(self, hooks: Sequence[Hook]) -> None:
        def overridden(name: str) -> Methods:
            inherited = getattr(Hook, name)
            methods = [(getattr(hook, name, None), getattr(type(hook), name, None)) for hook in hooks]
            return tuple(bound for bound, found in methods if callable(bound) and found is not inherited)

        self.started = overridden("started")
        self.stopped = overridden("stopped")
        self.before_receive = overridden("before_receive")
        self.after_receive = overridden("after_receive")
        self.before_process = overridden("before_process")
        self.after_process = overridden("after_process")
        self.before_ack = overridden("before_ack")
        self.after_ack = overridden("after_ack")
        self.retried = overridden("retried")
        self.dead = overridden("dead")
        self.watch_calls = bool(self.before_process or self.after_process or self.retried)
        self._told: set[Callable[..., Any]] = set()

    def call(self, methods: Methods, *arguments: Any) -> None:
        """Call each; what one raises is logged once for that method and otherwise ignored."""
        for method in methods:
            try:
                method(*arguments)
            except BaseException as error:
                if method not in self._told:
                    self._told.add(method)
                    name = getattr(method, "__qualname__", repr(method))
                    log.warning("hook %s failed, now and maybe again: %s", name, describe(error))
