"""Read a range of a log outside of any group."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka import Message as Record

from balog.topics.kafka.errors import explain, is_denied
from balog.topics.kafka.settings import Settings

_SILENCE = 30.0
_OF_A_GROUP = {KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError._STATE}
"""librdkafka looks up the coordinator of the group, which this consumer never joins; it may lack the ACL."""
_BATCH = 500


def read(settings: Settings, topic: str, stretches: Mapping[int, tuple[int, int]], where: str) -> Iterator[Record]:
    """Yield the records of a topic, in order within a partition, up to the first open transaction.

    Args:
        stretches: the first offset of each partition, and the one after the last.

    Raises:
        TopicError: no record arrived for 30 seconds, or the ACL is missing.
    """
    left = {number: end for number, (start, end) in stretches.items() if start < end}
    if not left:
        return
    denied: list[KafkaError] = []
    consumer = Consumer({**settings.consumer("balog"), "error_cb": denied.append})
    try:
        consumer.assign([TopicPartition(topic, number, stretches[number][0]) for number in left])
        heard = time.monotonic()
        while left:
            first = consumer.poll(0.1)
            if first is None:
                refused = next((error for error in denied if is_denied(error)), None)
                if refused is not None or time.monotonic() - heard > _SILENCE:
                    raise explain(KafkaError(KafkaError._TIMED_OUT), where, refused)
                continue
            heard = time.monotonic()
            for record in (first, *consumer.consume(_BATCH, 0)):
                number, offset = record.partition() or 0, record.offset() or 0
                error = record.error()
                if error is not None and error.code() in _OF_A_GROUP:
                    continue
                if error is not None and error.code() != KafkaError._PARTITION_EOF:
                    if not explain(error, where).retryable:
                        raise explain(error, where, topic=topic)
                    continue
                if number not in left:
                    continue
                if error is None and offset < left[number]:
                    yield record
                if error is not None or offset + 1 >= left[number]:  # an open transaction ends the log early
                    del left[number]
    finally:
        consumer.close()
