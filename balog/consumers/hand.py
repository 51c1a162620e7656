"""What an engine has in hand: received messages under a lease that is kept alive until each of them is settled."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType

from balog.errors import TopicError
from balog.topics import Received, Topic

__all__ = ["Hand", "LeaseKeeper"]

FLUSH_EVERY = 1.0
"""Handled messages are acked together, at least so often (seconds)."""

log = logging.getLogger("balog.consumers")


class Hand:
    """One batch of one topic. At its end the handled messages are acked, those that nobody tried are released.

    Args:
        settled: told of each message that was acked or dead-lettered, once the topic took it.
    """

    def __init__(
        self, topic: Topic, group: str, received: Sequence[Received], settled: Callable[[Received], None]
    ) -> None:
        self._topic = topic
        self._group = group
        self._settled = settled
        self._held = {message.receipt: message for message in received}
        self._handled: list[Received] = []
        self._flush_at = time.monotonic() + FLUSH_EVERY
        self._lock = threading.Lock()

    def __enter__(self) -> Hand:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        try:
            self.flush()
            with self._lock:
                untried = list(self._held.values())
                self._held.clear()
            self._topic.release(self._group, untried, attempted=False)
        except TopicError as second:
            if error is None:
                raise
            log.warning("%s; what was in hand comes back when its lease runs out", second)

    def handled(self, message: Received) -> None:
        """Note that a message was handled; it is acked together with others."""
        self._handled.append(message)
        if time.monotonic() >= self._flush_at:
            self.flush()

    def flush(self) -> None:
        """Ack what was handled."""
        self._topic.ack(self._group, self._handled)
        self._drop(self._handled)
        for message in self._handled:
            self._settled(message)
        self._handled = []
        self._flush_at = time.monotonic() + FLUSH_EVERY

    def retry(self, message: Received, delay: float) -> None:
        """Give a message back, to be received again after ``delay`` seconds."""
        self._topic.release(self._group, [message], delay)
        self._drop([message])

    def give_up(self, message: Received, reason: str) -> None:
        """Dead-letter a message."""
        self._topic.dead_letter(self._group, [message], reason)
        self._drop([message])
        self._settled(message)

    def extend(self, lease: float) -> None:
        """Let the leases of all that is not settled run for ``lease`` seconds from now."""
        with self._lock:
            held = list(self._held.values())
        self._topic.extend(self._group, held, lease)

    def _drop(self, messages: Sequence[Received]) -> None:
        with self._lock:
            for message in messages:
                self._held.pop(message.receipt, None)


class LeaseKeeper:
    """A thread that extends what is in hand, so that a slow handler keeps its messages to itself."""

    def __init__(self, lease: float) -> None:
        self._lease = lease
        self._hand: Hand | None = None
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="balog-leases", daemon=True)

    def __enter__(self) -> LeaseKeeper:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def keep(self, hand: Hand | None) -> None:
        """Keep this batch alive from now on, in place of the one before."""
        self._hand = hand

    def _run(self) -> None:
        while not self._end.wait(self._lease / 3):
            hand = self._hand
            if hand is None:
                continue
            try:
                hand.extend(self._lease)
            except TopicError as error:
                log.warning("leases could not be extended: %s", error)
