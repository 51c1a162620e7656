"""Scopes that deliver their events before they end, for processes that are frozen or killed between two tasks."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

from balog.log.configuration import flush
from balog.log.context import bound

Function = TypeVar("Function", bound=Callable[..., Any])


class flushing:
    """Add keys to the context as ``bound`` does, and deliver queued events when the block ends, also by an exception.

    For code whose process may be frozen or killed right after it: an AWS Lambda handler, a task of Airflow, a partition
    of Spark. As a decorator it takes a plain function, a generator or an ``async def``; a coroutine waits for the
    delivery without holding its event loop. Never raises.

    Args:
        deadline: the longest delivery in seconds. An output without a spool drops, and counts as lost, the events that
            its sink has not accepted by then.
        values: the keys.
    """

    __slots__ = ("_bound", "_deadline", "_values")

    def __init__(self, deadline: float = 5.0, /, **values: Any) -> None:
        self._deadline = deadline
        self._values = values
        self._bound = bound(**values)

    def __enter__(self) -> None:
        self._bound.__enter__()

    def __exit__(self, *_: object) -> None:
        self._bound.__exit__()
        flush(self._deadline)

    def __call__(self, function: Function) -> Function:
        """Return the function with the keys bound while it runs, and a delivery at its end.

        Raises:
            TypeError: an async generator, whose end nobody awaits.
        """
        if inspect.isasyncgenfunction(function):
            raise TypeError("balog.flushing takes no async generator; flush in the function that reads it")
        run = bound(**self._values)(function)
        wrap: Callable[..., Any] = _flush_after_call
        if inspect.iscoroutinefunction(function):
            wrap = _flush_after_coroutine
        elif inspect.isgeneratorfunction(function):
            wrap = _flush_after_generator
        return cast("Function", functools.wraps(function)(wrap(run, self._deadline)))


def _flush_after_call(run: Callable[..., Any], deadline: float) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        try:
            return run(*args, **options)
        finally:
            flush(deadline)

    return call


def _flush_after_generator(run: Callable[..., Any], deadline: float) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        try:
            return (yield from run(*args, **options))
        finally:
            flush(deadline)

    return call


def _flush_after_coroutine(run: Callable[..., Any], deadline: float) -> Callable[..., Any]:
    async def call(*args: Any, **options: Any) -> Any:
        try:
            return await run(*args, **options)
        finally:
            await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, flush, deadline))

    return call
