"""Concurrent requests with results in order, and waits that they can cancel."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextvars import Context, copy_context
from queue import SimpleQueue
from typing import TypeVar

from balog.common.signals import signals_for_main_thread
from balog.tap.errors import check_number

_thread = threading.local()


class Cancelled(BaseException):
    """Raised in a worker's thread whose results are no longer needed; no ``except Exception`` catches it."""


def cancelled_by(event: threading.Event) -> None:
    """Make ``pause`` in this thread raise ``Cancelled`` when the event is set."""
    _thread.event = event


def pause(seconds: float) -> None:
    """Wait. In the main thread a signal handler that raises ends it, in a worker's thread its cancellation.

    Args:
        seconds: how long to wait.

    Raises:
        Cancelled: the thread's event was set; see ``cancelled_by``.
    """
    event: threading.Event | None = getattr(_thread, "event", None)
    if event is None:
        time.sleep(max(0.0, seconds))
    elif event.wait(max(0.0, seconds)):
        raise Cancelled


_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def concurrently(
    items: Iterable[_Item], function: Callable[[_Item], _Result], *, workers: int = 4
) -> Iterator[_Result]:
    """Call a function for each item in several threads; yield the results in the order of the items.

    An exception, of the function or of the items, is raised in place of its result, after the results before it. Then,
    and when the results are no longer needed (a signal ends the run, the stream fails), no new call starts, the waits
    of the retry policy end at once, and running requests are not awaited.

    Args:
        items: read in this thread, at most twice as many as workers in advance.
        function: must be thread-safe, as ``balog.tap.http.Client`` is. It should return records, because records that
            it writes with ``context`` come in no order.
        workers: the maximum number of threads.

    Raises:
        TapError: ``workers`` is less than 1.
    """
    check_number("concurrently: workers", workers, least=1)
    return _results(iter(items), function, workers)


def _results(items: Iterator[_Item], function: Callable[[_Item], _Result], workers: int) -> Iterator[_Result]:
    stop = threading.Event()
    tasks: SimpleQueue[tuple[_Item, Context, Future[_Result]] | None] = SimpleQueue()
    pending: deque[Future[_Result]] = deque()
    threads: list[threading.Thread] = []
    failure: Exception | None = None  # of the items

    def work() -> None:
        cancelled_by(stop)
        while (task := tasks.get()) is not None:
            item, context, outcome = task
            if not stop.is_set():
                try:
                    outcome.set_result(context.run(function, item))
                except BaseException as error:
                    outcome.set_exception(error)

    try:
        while True:
            while failure is None and len(pending) < 2 * workers:
                try:
                    item = next(items)
                except StopIteration:
                    break
                except Exception as error:
                    failure = error
                    break
                pending.append(Future())
                tasks.put((item, copy_context(), pending[-1]))  # what is bound to the log here is bound there
                if len(threads) < workers:
                    threads.append(threading.Thread(target=work, name="balog tap", daemon=True))
                    with signals_for_main_thread():
                        threads[-1].start()
            if not pending:
                if failure is not None:
                    raise failure
                return
            yield pending.popleft().result()
    finally:
        stop.set()
        for _ in threads:
            tasks.put(None)
