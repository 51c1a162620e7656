"""Commit the offset of each changed partition, with the group's progress in its metadata.

Threads request commits, and one thread writes them, because a Kafka client's calls wait for each other.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from balog.common.errors import TopicError
from balog.topics.kafka.errors import as_kafka_error, is_fenced
from balog.topics.kafka.partition import AssignedPartition

log = logging.getLogger("balog.topics.kafka")


class FencedError(Exception):
    """The group rebalances, or has moved partitions: nothing was committed."""

    def __init__(self, error: KafkaError) -> None:
        super().__init__(error.str())
        self.error = error


@dataclass(eq=False)
class CommitQueue:
    """Requests for a commit; one commit serves all that wait.

    Args:
        partitions: the partitions assigned to the member; the member changes them.
        changed: the lock of the partitions; notified when a request is added or served.
        where: the name of the topic in errors.
        explain: returns the error to raise.
    """

    consumer: Consumer
    partitions: Mapping[tuple[str, int], AssignedPartition]
    changed: threading.Condition
    where: str
    explain: Callable[[Exception], TopicError]
    _requests: list[Future[None]] = field(default_factory=list, init=False)
    _is_closed: bool = field(default=False, init=False)

    def __len__(self) -> int:
        return len(self._requests)

    def commit(self) -> None:
        """Request a commit and wait until it is written.

        Raises:
            TopicError: the commit failed.
            FencedError: the commit failed because the group rebalances.
        """
        request: Future[None] = Future()
        with self.changed:
            if self._is_closed:
                raise self._closed()
            self._requests.append(request)
            self.changed.notify_all()
        request.result()

    def serve(self) -> None:
        """Write one commit for all requests. Called by the thread that polls the consumer."""
        with self.changed:
            requests, self._requests = self._requests, []
        if not requests:
            return
        try:
            self._write()
        except Exception as error:
            is_ours = isinstance(error, (TopicError, FencedError))
            for request in requests:
                request.set_exception(error if is_ours else self._closed())
            if not is_ours:
                raise
            return
        for request in requests:
            request.set_result(None)

    def commit_unrequested(self) -> None:
        """Write what changed; a failure is only logged. Called by the thread that polls the consumer."""
        try:
            self._write()
        except (TopicError, FencedError) as error:
            log.debug("%s: %s", self.where, error)

    def close(self) -> None:
        """Fail the requests that wait. Called with the lock."""
        self._is_closed = True
        for request in self._requests:
            request.set_exception(self._closed())

    def _closed(self) -> TopicError:
        return TopicError(f"{self.where}: closed before the commit; messages in flight are delivered again")

    def _write(self) -> None:
        """Commit, and wait for the result; raises as ``commit`` does."""
        with self.changed:
            changed = [(each, *state) for each in self.partitions.values() if (state := each.uncommitted()) is not None]
        if not changed:
            return
        offsets = [
            TopicPartition(partition.topic, partition.number, progress.commit, metadata=partition.encode(progress))
            for partition, progress, _ in changed
        ]
        try:
            for written in self.consumer.commit(offsets=offsets, asynchronous=False):
                if written.error is not None:
                    raise KafkaException(written.error)
        except (KafkaException, RuntimeError) as error:
            kafka_error = as_kafka_error(error)
            if kafka_error is not None and is_fenced(kafka_error):
                raise FencedError(kafka_error) from None
            raise self.explain(error) from None
        with self.changed:
            for partition, _, number in changed:
                partition.note_commit(number)
