"""The threads that post requests, as many as are needed, and the queue of their results."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable

from msgspec import Struct

from balog.delivery.jobs.callbacks.endpoint import PostFailure
from balog.delivery.jobs.callbacks.posts import Post
from balog.signals import signals_for_main_thread

__all__ = ["CallbackWorkerPool", "PostResult"]


class PostResult(Struct, frozen=True):
    """The result of a request.

    Attributes:
        failure: None when the request succeeded.
        begun: when the request began, in seconds of ``time.monotonic``.
    """

    post: Post
    failure: PostFailure | None
    begun: float


class CallbackWorkerPool:
    """The threads of one endpoint, so that a hanging endpoint delays no other callback.

    Args:
        send: posts one request; it must not raise.
        name: the prefix of the threads' names.

    Attributes:
        busy: requests that were submitted and whose results were not taken yet.
    """

    def __init__(self, send: Callable[[Post], PostFailure | None], name: str) -> None:
        self.busy = 0
        self._send = send
        self._name = name
        self._todo: queue.SimpleQueue[Post | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[PostResult | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []

    def submit(self, post: Post) -> None:
        """Post a request at once, with a further thread if all are busy."""
        self.busy += 1
        if self.busy > len(self._threads):
            name = f"{self._name}-{len(self._threads) + 1}"
            self._threads.append(threading.Thread(target=self._run, name=name, daemon=True))
            with signals_for_main_thread():
                self._threads[-1].start()
        self._todo.put(post)

    def take(self, wait: float) -> list[PostResult]:
        """Return the results, after waiting at most ``wait`` seconds for the first one."""
        found: list[PostResult] = []
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
        """End the wait of ``take``. May be called from any thread."""
        self._done.put(None)

    def close(self, wait: float) -> None:
        """End the threads, and wait at most ``wait`` seconds for those that are busy."""
        for _ in self._threads:
            self._todo.put(None)
        end = time.monotonic() + wait
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))

    def _run(self) -> None:
        while (post := self._todo.get()) is not None:
            begun = time.monotonic()
            self._done.put(PostResult(post, self._send(post), begun))
