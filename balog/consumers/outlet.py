"""A sink as a handler uses it: what it does not take is told to the engine in the engine's own words."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from balog.consumers.ending import at_end
from balog.consumers.outcomes import PartialFailure, Reject, Retry
from balog.errors import BalogError, complain
from balog.event import Event, encode
from balog.sinks.attempt import attempt
from balog.sinks.base import Delivery, Sink, SinkConfig, SinkError

__all__ = ["Outlet"]


class Outlet:
    """A sink that is opened at the first event and closed when the engine's run is over, or by :meth:`close`.

    There is no queue and no spool: what was not taken stays in the topic. A sink wants one batch at a time, so the
    consumer says ``concurrency=1``; sinks that post each event by itself (``pagerduty``, ``webhook``) may get several.
    While the other side is down it is asked again after the config's ``retry``, later each time, however many events
    wait for it.

    Args:
        config: of any sink; its ``where`` and ``batch`` are the consumer's business and not looked at.

    Raises:
        ConfigError: what the config says can't be, or a secret is not there.
        MissingExtraError: the sink's packages are not installed.
    """

    def __init__(self, config: SinkConfig) -> None:
        self.name = config.name
        self._config = config
        self._built: Sink | None = config.build()  # says at once what can't be
        self._opened: Sink | None = None
        self._lock = threading.Lock()
        self._trouble = ""
        self._pause = config.retry.first
        self._next_try = 0.0

    def send(self, events: Sequence[Event]) -> None:
        """Deliver events; they are safe at the other side, as far as the sink promises that, when this returns.

        Raises:
            Retry: the other side is down or busy; after as many seconds as it asked for, or until the next try is due.
            Reject: the only event was refused for good.
            PartialFailure: some events of several; each with a ``Retry`` or a ``Reject`` of its own.
        """
        with self._lock:
            wait = self._next_try - time.monotonic()
            if self._trouble and wait > 0:
                raise Retry(self._trouble, wait)
        batch = [Delivery(event, encode(event)) for event in events]
        outcome = attempt(self._write, batch, max_writes=2 * len(batch))  # so that each refused event was tried alone
        if outcome.taken:
            self._recover()
        failed: dict[int, BalogError] = {index: Reject(reason) for index, reason in outcome.dead.items()}
        if outcome.left and outcome.error is not None:
            retry = Retry(str(outcome.error), self._put_off(outcome.error))
            failed.update(dict.fromkeys(outcome.left, retry))
            if len(outcome.left) == len(batch):
                raise retry
        if failed and len(batch) == 1:
            raise failed[0]
        if failed:
            raise PartialFailure({events[index].header.id: why for index, why in sorted(failed.items())})

    def _put_off(self, error: SinkError) -> float:
        """Note that the other side takes nothing; give the seconds until it is asked again."""
        retry = self._config.retry
        with self._lock:
            wait = max(self._pause, error.retry_after or 0.0)
            self._trouble, self._next_try = str(error), time.monotonic() + wait
            self._pause = min(self._pause * 2, retry.longest)
        return wait

    def _recover(self) -> None:
        with self._lock:
            self._trouble, self._pause = "", self._config.retry.first

    def _write(self, batch: Sequence[Delivery]) -> None:
        with self._lock:
            if self._opened is None:
                self._built = self._built or self._config.build()  # a sink that was closed is never used again
                self._built.open()
                self._opened, self._built = self._built, None
                at_end(self._close_at_end)
            sink = self._opened
        sink.write(batch)

    def close(self) -> None:
        """Finish what is open; a later ``send`` opens the sink anew.

        Raises:
            SinkError: what could not be finished, and where it is kept.
        """
        with self._lock:
            sink, self._opened = self._opened, None
            if sink is not None:
                sink.close()

    def _close_at_end(self) -> None:
        try:
            self.close()
        except SinkError as error:
            complain(f"{self.name}: {error}")
