"""Commits that threads request and one thread writes, because a Kafka client's calls wait for each other."""

from __future__ import annotations

import logging
import threading

from balog.errors import TopicError
from balog.topics.kafka.commits import Commits, FencedError

__all__ = ["CommitQueue"]

log = logging.getLogger("balog.topics.kafka")


class CommitQueue:
    """Requests for a commit; one commit serves all that wait.

    Args:
        commits: writes the offsets of changed partitions.
        changed: the member's lock; notified when a request is added or served.
        where: the name of the topic in errors.
    """

    def __init__(self, commits: Commits, changed: threading.Condition, where: str) -> None:
        self._commits = commits
        self._changed = changed
        self._where = where
        self._requests: list[_Request] = []
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._requests)

    def commit(self) -> None:
        """Request a commit and wait until it is written.

        Raises:
            TopicError: the commit failed.
            FencedError: the commit failed because the group rebalances.
        """
        request = _Request()
        with self._changed:
            self._requests.append(request)
            self._changed.notify_all()
            while not request.done:
                if self._is_closed:
                    raise TopicError(f"{self._where}: closed before the commit; messages in flight are delivered again")
                self._changed.wait(1.0)
        if request.error is not None:
            raise request.error

    def serve(self) -> None:
        """Write one commit for all requests. Called by the thread that polls the consumer."""
        with self._changed:
            requests, self._requests = self._requests, []
        if not requests:
            return
        error: TopicError | FencedError | None = None
        try:
            self._commits.write()
        except (TopicError, FencedError) as caught:
            error = caught
        with self._changed:
            for request in requests:
                request.error, request.done = error, True
            self._changed.notify_all()

    def commit_unrequested(self) -> None:
        """Write what changed; a failure is only logged. Called by the thread that polls the consumer."""
        try:
            self._commits.write()
        except (TopicError, FencedError) as error:
            log.debug("%s: %s", self._where, error)

    def close(self) -> None:
        """Fail the requests that wait. Called with the lock."""
        self._is_closed = True


class _Request:
    def __init__(self) -> None:
        self.done = False
        self.error: TopicError | FencedError | None = None
