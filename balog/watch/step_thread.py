"""A thread that takes a step again and again while a watcher runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from balog.common.errors import BalogError
from balog.common.signals import join, signals_for_main_thread

if TYPE_CHECKING:
    from typing_extensions import Self

TICK_SECONDS = 1.0
"""Seconds between two steps."""


class StepThread:
    """Takes a step again and again in a thread of its own. Use it as a context around the run.

    Args:
        name: the thread's name.
        say: called with one line for the operator when a step fails; once while the error is the same.
        every: seconds between two steps; ``TICK_SECONDS`` if omitted.
    """

    def __init__(self, name: str, say: Callable[[str], None], every: float | None = None) -> None:
        self._say = say
        self._every = every
        self._error = ""
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> Self:
        with signals_for_main_thread():
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        join(self._thread)

    def step(self) -> None:
        """Do what is due. An error ends this step only."""
        raise NotImplementedError

    def _run(self) -> None:
        while not self._end.wait(TICK_SECONDS if self._every is None else self._every):
            try:
                self.step()
            except Exception as error:  # the next step may succeed
                reason = str(error) if isinstance(error, BalogError) else f"{type(error).__name__}: {error}"
                if reason != self._error:
                    self._error = reason
                    self._say(reason)
            else:
                self._error = ""
