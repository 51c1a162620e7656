"""A listing of consumers: their topics and conditions, and the conditions that no event of this release meets."""

from __future__ import annotations

from typing import NamedTuple

from balog.common.errors import ConfigError
from balog.consumers.consumer import Consumer
from balog.consumers.operator import Operator
from balog.event import FACILITY_VERSION


class Listed(NamedTuple):
    """One consumer as declared, for people.

    Attributes:
        wants: the conditions on events, as a line each; "everything" without conditions.
        handling: the options of calls, as a line each; none when the engine's defaults apply.
    """

    consumer: str
    topic: str
    wants: list[str]
    handling: list[str]


def describe(consumer: Consumer, operator: Operator) -> Listed:
    """Describe a consumer; a topic whose placeholders the operator can't fill in stays as it was declared."""
    try:
        topic = operator.get_topic(consumer)
    except ConfigError:
        topic = consumer.topic
    return Listed(consumer.name, topic, _wants(consumer), _handling(consumer))


def _wants(consumer: Consumer) -> list[str]:
    conditions, where = consumer.conditions, consumer.where
    lines = [
        (", ".join(sorted(conditions.cls_type or ())), ""),
        (", ".join(conditions.version or ()), "facility "),
        (", ".join(conditions.payload_version or ()), "payload version "),
        (" or ".join(conditions.channel or ()), "channel "),
        (conditions.level and f"{conditions.level} and above", "level "),
        (where and where.text, "where "),
        (consumer.matches_its_own_way and "by its own match_event", ""),
    ]
    return [label + str(text) for text, label in lines if text] or ["everything"]


def _handling(consumer: Consumer) -> list[str]:
    lines = ["async"] if consumer.is_async else []
    if consumer.batch is not None:
        lines.append(f"batches of {consumer.batch.size}, or after {consumer.batch.wait:g} s")
    if consumer.ordered_by is not None:
        lines.append(f"in order by {consumer.ordered_by.text}")
    if consumer.concurrency is not None:
        lines.append(f"{consumer.concurrency} at once")
    if consumer.retries is not None:
        lines.append(f"{consumer.retries} retries")
    if consumer.backoff is not None:
        lines.append(f"backoff {consumer.backoff.first:g} to {consumer.backoff.longest:g} s")
    if consumer.timeout is not None:
        lines.append(f"timeout {consumer.timeout:g} s")
    return lines


def unmet_version(consumer: Consumer) -> str | None:
    """Return a warning if the consumer wants no event that this release writes; None if it wants some."""
    conditions = consumer.conditions
    if consumer.matches_its_own_way or conditions.meet_version(FACILITY_VERSION):
        return None
    return (
        f"consumer {consumer.name} gets no event that this release writes: its version "
        f"{' and '.join(conditions.version or ())} is a condition on the facility layer, which is at "
        f"{FACILITY_VERSION}; leave it out, or use payload_version for the version of the payload"
    )
