"""The threads that post, as many as there is work for; what became of each request is waited for in one place."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable

from msgspec import Struct

from balog.delivery.jobs.callbacks.endpoint import Refusal
from balog.delivery.jobs.callbacks.posts import Post
from balog.signals import signals_for_main_thread

__all__ = ["Crew", "Outcome"]


class Outcome(Struct, frozen=True):
    """What became of a request: ``refusal`` is None when it succeeded, ``begun`` in monotonic seconds."""

    post: Post
    refusal: Refusal | None
    begun: float


class Crew:
    """Threads of one endpoint, so that one that hangs holds up nobody else's.

    Args:
        send: posts one request; it raises nothing.
        name: of the threads.

    Attributes:
        busy: requests that were submitted and whose outcomes nobody has taken yet.
    """

    def __init__(self, send: Callable[[Post], Refusal | None], name: str) -> None:
        self.busy = 0
        self._send = send
        self._name = name
        self._todo: queue.SimpleQueue[Post | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[Outcome | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []

    def submit(self, post: Post) -> None:
        """Have a request posted at once, by a thread more if all are busy."""
        self.busy += 1
        if self.busy > len(self._threads):
            name = f"{self._name}-{len(self._threads) + 1}"
            self._threads.append(threading.Thread(target=self._run, name=name, daemon=True))
            with signals_for_main_thread():
                self._threads[-1].start()
        self._todo.put(post)

    def take(self, wait: float) -> list[Outcome]:
        """Give what is over, after waiting so many seconds at most for the first one."""
        found: list[Outcome] = []
        try:
            one = self._done.get(timeout=wait) if wait > 0 else self._done.get_nowait()
            while True:
                if one is not None:
                    found.append(one)
                one = self._done.get_nowait()
        except queue.Empty:
            self.busy -= len(found)
            return found

    def wake(self) -> None:
        """End the wait of ``take``. From any thread."""
        self._done.put(None)

    def close(self, wait: float) -> None:
        """End the threads; those that are at work end after it, and ``wait`` is how many seconds they have to."""
        for _ in self._threads:
            self._todo.put(None)
        end = time.monotonic() + wait
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))

    def _run(self) -> None:
        while (post := self._todo.get()) is not None:
            begun = time.monotonic()
            self._done.put(Outcome(post, self._send(post), begun))
