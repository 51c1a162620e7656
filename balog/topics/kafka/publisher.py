"""Publish records; all in-sync replicas have stored them when ``send`` returns."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from balog.common.errors import TopicError
from balog.topics.kafka.errors import as_kafka_error, explain, is_denied
from balog.topics.kafka.records import OutgoingRecord

_QUEUE_FULL = 0.005

_quiet = logging.getLogger("balog.topics.kafka.librdkafka")


class Publisher:
    """An idempotent producer, and the thread that polls it until it is closed and no call of ``send`` is active.

    Attributes:
        broken: whether it must be replaced.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self.broken = False
        self._changed = threading.Lock()
        self._sending = 0
        self._denied: KafkaError | None = None
        self._producer = Producer({**settings, "error_cb": self._on_error}, logger=_quiet)
        self._closing = False
        self._thread = threading.Thread(target=self._serve, name="balog-kafka-publisher", daemon=True)
        self._thread.start()

    def send(self, topic: str, records: Sequence[OutgoingRecord], where: str) -> None:
        """Store records, in their order within a partition.

        Raises:
            TopicError: not all of them are stored; the message has the number of stored ones.
        """
        with self._changed:
            if self._closing:
                raise TopicError(f"{where}: closed while it was published to; try again")
            self._sending += 1
        try:
            self._send(topic, records, where)
        finally:
            with self._changed:
                self._sending -= 1

    def _send(self, topic: str, records: Sequence[OutgoingRecord], where: str) -> None:
        batch = _Batch()
        for record in records:
            if not self._produce(topic, record, batch):
                break
        failed = batch.wait(lambda: self._denied)
        if failed is None:
            self._denied = None
            return
        error, record = failed
        # Access may be granted later; a new producer logs in again.
        self.broken = self.broken or error.fatal() or self._denied is not None
        stored = f"; {batch.stored} of {len(records)} are stored" if batch.stored else ""
        raised = explain(error, where, self._denied, topic=topic, operation="WRITE")
        reason = f"{raised} (message {record.id:.80}, {len(record.value or b'')} bytes){stored}"
        raise type(raised)(reason, retryable=raised.retryable)

    def _produce(self, topic: str, record: OutgoingRecord, batch: _Batch) -> bool:
        batch.sending(record)
        while True:
            try:
                self._producer.produce(
                    topic,
                    value=record.value,
                    key=record.key,
                    headers=record.headers,
                    on_delivery=lambda error, _: batch.report(error, record),
                )
                return True
            except BufferError:
                if self._denied is not None:
                    batch.report(self._denied, record)
                    return False
                time.sleep(_QUEUE_FULL)
            except KafkaException as error:
                batch.report(as_kafka_error(error) or KafkaError(KafkaError._FAIL), record)
                return False

    def retire(self) -> None:
        """Accept no more records; the thread and the producer end when current calls of ``send`` have their results."""
        with self._changed:
            self._closing = True

    def close(self, timeout: float = 10.0) -> None:
        """Retire, and wait at most ``timeout`` seconds for the end."""
        self.retire()
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout)

    def _serve(self) -> None:
        while not self._closing or self._sending:
            self._producer.poll(0.1)
        del self._producer  # ends its threads; the producer and this object refer to each other

    def _on_error(self, error: KafkaError) -> None:
        if is_denied(error):
            self._denied = error
        elif error.fatal():
            self.broken = True


class _Batch:
    def __init__(self) -> None:
        self.stored = 0
        self._open = 0
        self._failed: tuple[KafkaError, OutgoingRecord] | None = None
        self._changed = threading.Condition(threading.Lock())

    def sending(self, record: OutgoingRecord) -> None:
        with self._changed:
            self._open += 1
            self._last = record

    def report(self, error: KafkaError | None, record: OutgoingRecord) -> None:
        with self._changed:
            self._open -= 1
            if error is None:
                self.stored += 1
            elif self._failed is None:
                self._failed = error, record
            if not self._open:
                self._changed.notify_all()

    def wait(self, denied: Callable[[], KafkaError | None]) -> tuple[KafkaError, OutgoingRecord] | None:
        """Wait until every record is reported, or the cluster denies access; return the first failure."""
        with self._changed:
            while self._open:
                self._changed.wait(0.2)
                refused = denied()
                if self._open and refused is not None:
                    return refused, self._last
            return self._failed
