"""Failures of consumers as events, written to the logger's outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from balog.common.text import cut
from balog.consumers.hooks import Hook, Work
from balog.consumers.routing import causes
from balog.event import Event
from balog.event.payload import ConsumerFailurePayload
from balog.log.context import bound
from balog.log.logger import get_logger
from balog.log.values.exceptions import type_name
from balog.topics import Received

_MAX_REASON = 1000


class FailureEvents(Hook):
    """Logs a ``consumer_failure`` for each event that is retried (WARNING) or dead-lettered (ERROR).

    The event names the consumers, the event that failed, the number of attempts and the reason, and holds nothing of
    the failed event's payload. Its channel is ``balog.consumers.failure``. Where it reaches a topic, the consumers that
    failed do not get it, so that a consumer of failures can't feed itself.
    """

    def __init__(self) -> None:
        self._log = get_logger("balog.consumers")

    def retried(self, work: Work, event: Event, error: BaseException, delay: float) -> None:
        """Log an event that is retried."""
        failure = ConsumerFailurePayload(
            outcome="retry",
            topic=work.topic,
            event=event.header.id,
            consumers=[work.consumer.name],
            attempt=work.attempt,
            reason=_text(error),
            channel=event.header.channel,
            error_type=type_name(type(error)),
            delay=max(0.0, delay),
        )
        self._write("warning", failure, event)

    def dead(self, topic: str, received: Received, event: Event | None, reason: str, consumers: Sequence[str]) -> None:
        """Log an event that was dead-lettered."""
        failure = ConsumerFailurePayload(
            outcome="dead",
            topic=topic,
            event=event.header.id if event is not None else received.id,
            consumers=list(consumers),
            attempt=received.attempts,
            reason=cut(" ".join(reason.split()), _MAX_REASON),
            channel=event.header.channel if event is not None else msgspec.UNSET,
        )
        self._write("error", failure, event)

    def _write(self, level: Literal["warning", "error"], failure: ConsumerFailurePayload, event: Event | None) -> None:
        names = dict.fromkeys([*(causes(event) if event is not None else ()), *failure.consumers])
        with bound(caused_by={"event": failure.event, "consumers": list(names)}):
            getattr(self._log, level)("failure", payload=failure)


def _text(error: BaseException) -> str:
    try:
        return cut(" ".join(str(error).split()), _MAX_REASON)
    except BaseException:  # its own __str__ raises
        return ""
