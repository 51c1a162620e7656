"""Hooks: observers of an engine, such as metrics, traces and error reporters."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from balog.common.errors import BalogError
from balog.common.plugins import load_named, make, package_of
from balog.consumers.consumer import Consumer
from balog.consumers.error_text import error_line
from balog.event import Event
from balog.topics import Received

if TYPE_CHECKING:
    from balog.consumers.engine import Engine

log = logging.getLogger("balog.consumers")


class Work(Struct, frozen=True, dict=True):
    """One call of one consumer, with one event or a batch. A hook may store values in its ``__dict__``.

    Attributes:
        attempt: the number of this consumer's attempt for the event, from 1; of a batch the highest.
    """

    topic: str
    consumer: Consumer
    events: tuple[Event, ...]
    attempt: int


class Hook:
    """Methods that an engine calls while it runs. Override those that you need; the others cost nothing.

    The engine's threads call them, possibly several at once. The thread that runs the handler calls the ``process``
    methods; for ``async def`` handlers, that is the event loop's thread. An exception is logged once per hook and
    method and otherwise ignored: a hook can't fail an event.
    """

    def started(self, engine: Engine) -> None:
        """Called when a run begins."""

    def stopped(self, engine: Engine) -> None:
        """Called when a run is over."""

    def tick(self, engine: Engine) -> None:
        """Called by the main loop, at least once a second."""

    def unreachable(self, topic: str, error: BalogError) -> None:
        """Called when a topic can't be reached; the engine tries again."""

    def after_receive(self, topic: str, received: Sequence[Received]) -> None:
        """Called after a receive, also an empty one."""

    def before_process(self, work: Work) -> None:
        """Called before a handler."""

    def after_process(self, work: Work, error: BaseException | None, seconds: float) -> None:
        """Called after a handler returned or raised ``error``; a ``PartialFailure`` names the events that failed."""

    def before_ack(self, topic: str, received: Sequence[Received]) -> None:
        """Called before messages are acked."""

    def after_ack(self, topic: str, received: Sequence[Received]) -> None:
        """Called after messages were acked."""

    def retried(self, work: Work, event: Event, error: BaseException, delay: float) -> None:
        """Called for each event that failed at a consumer and is retried there in ``delay`` seconds."""

    def dead(self, topic: str, received: Received, event: Event | None, reason: str, consumers: Sequence[str]) -> None:
        """Called after a message was dead-lettered; ``event`` is None when it could not be decoded."""


def open_hook(name: str) -> Hook:
    """Return a new hook of an installed package, by the name of its entry point in the group ``balog.hooks``.

    Raises:
        ConfigError: no installed package has it.
        BalogError: it cannot be imported or made.
    """
    hook: Hook = make("balog.hooks", name, load_named("balog.hooks", name))
    if not any(callable(getattr(hook, method, None)) for method in vars(Hook) if not method.startswith("_")):
        raise BalogError(
            f"the consumer hook {name!r} of {package_of('balog.hooks', name)} cannot be used:"
            f" its {type(hook).__name__} has no method of a hook"
        )
    return hook


class HookCalls:
    """The overridden methods of several hooks, so that an engine without hooks pays only for an empty list.

    Args:
        hooks: called in this order.

    Attributes:
        watch_calls: a hook observes calls of handlers.
        is_empty: there is none, so ``call`` need not be asked.
    """

    def __init__(self, hooks: Sequence[Hook]) -> None:
        self._overridden: dict[object, list[Callable[..., Any]]] = {
            inherited: [
                method
                for hook in hooks
                if callable(method := getattr(hook, name, None)) and getattr(type(hook), name, None) is not inherited
            ]
            for name, inherited in vars(Hook).items()
            if not name.startswith("_")
        }
        self.watch_calls = any(
            self._overridden[method] for method in (Hook.before_process, Hook.after_process, Hook.retried)
        )
        self.is_empty = not any(self._overridden.values())
        self._reported: set[Callable[..., Any]] = set()

    def call(self, inherited: Callable[..., None], *arguments: Any) -> None:
        """Call what overrides a method of ``Hook``; an exception is logged once and otherwise ignored."""
        for method in self._overridden[inherited]:
            try:
                method(*arguments)
            except BaseException as error:
                if method not in self._reported:
                    self._reported.add(method)
                    name = getattr(method, "__qualname__", repr(method))
                    log.warning("hook %s failed, now and maybe again: %s", name, error_line(error))
