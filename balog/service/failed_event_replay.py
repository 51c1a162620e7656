"""Replays events that a service rejected, after repairing them."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Raw, Struct, structs

from balog.common.errors import EventError, split_refusal
from balog.common.stats import Stats, counter
from balog.event import Event, check_keys, decode, encode
from balog.filters import Expression
from balog.service.client import ServiceClient
from balog.service.intake.router import FAILED_EVENTS_TOPIC
from balog.sinks.service import Item
from balog.topics import Received, Topic
from balog.topics.redrive import Patch

GROUP = "replay"
_LEASE = 3600.0
_BATCH = 200


class _Failed(Struct):
    data: str
    form: str
    event: str = ""


class ReplayStats(Stats):
    """Counters of a replay, in failed events. All but the sent ones stay."""

    component: ClassVar[str] = "replay"
    sent: Annotated[int, counter("Failed events that were accepted and are done.")] = 0
    refused: Annotated[int, counter("Failed events that were rejected again.")] = 0
    filtered: Annotated[int, counter("Failed events that did not match the condition.")] = 0
    invalid: Annotated[int, counter("Failed events that are not events even with the patch.")] = 0

    @property
    def left(self) -> int:
        """The number of failed events that stay."""
        return self.refused + self.filtered + self.invalid


class FailedEventReplay(Struct):
    """Sends rejected events to the service again.

    A failed event is acknowledged once the service has accepted the repaired event. All others stay for the next
    replay. Events keep their ids, so an interrupted replay stores nothing twice.

    Attributes:
        topic: the topic of failed events.
        client: a client of the service.
        patch: the changes to each event.
        where: selects failed events, such as ``payload.type = 'order'``.
        report: called with each event that is, or would be, sent.
        report_failure: called with the id of a failed event that stays, and the reason.
    """

    topic: Topic
    client: ServiceClient
    patch: Patch
    where: Expression | None
    report: Callable[[Event], object]
    report_failure: Callable[[str, str], object]

    def dry_run(self, limit: int) -> ReplayStats:
        """Report which events would be sent, from at most ``limit`` failed events, and send nothing."""
        counts = Counter[str]()
        for _, event in self._repaired(self.topic.peek(limit), counts):
            self.report(event)
            counts["sent"] += 1
        return ReplayStats(**counts)

    def run(self, limit: int | None = None, should_stop: Callable[[], bool] = lambda: False) -> ReplayStats:
        """Send all failed events, or at most ``limit``.

        Raises:
            DeliveryError: the service is unreachable; events that it did not accept stay.
            TopicError: the topic fails.
        """
        counts = Counter[str]()
        kept: list[Received] = []
        left = self.topic.group_state(GROUP).pending
        left = left if limit is None else min(left, limit)
        try:
            while left > 0 and not should_stop():
                received = self.topic.receive(GROUP, min(_BATCH, left), 0.0, _LEASE)
                if not received:
                    break
                left -= len(received)
                kept += [structs.replace(item, body=b"") for item in received]  # until the service has accepted it
                taken = self._send(list(self._repaired(received, counts)), counts)
                self.topic.ack(GROUP, taken)
                done = {item.receipt for item in taken}
                kept = [item for item in kept if item.receipt not in done]
        finally:
            self.topic.release(GROUP, kept, attempted=False)
        return ReplayStats(**counts)

    def _repaired(self, received: Sequence[Received], counts: Counter[str]) -> Iterator[tuple[Received, Event]]:
        for message in received:
            try:
                failed = decode(message.body)
                if self.where is not None and not self.where.matches(failed):
                    counts["filtered"] += 1
                    continue
                yield message, repair(failed, self.patch)
            except EventError as error:
                counts["invalid"] += 1
                self.report_failure(message.id, str(error))

    def _send(self, repaired: Sequence[tuple[Received, Event]], counts: Counter[str]) -> list[Received]:
        acks: Sequence[Item] = self.client.send([event for _, event in repaired], keep_failed=False)
        taken = []
        for (received, event), ack in zip(repaired, acks):
            if ack.status == 202:
                counts["sent"] += 1
                taken.append(received)
                self.report(event)
            else:
                counts["refused"] += 1
                self.report_failure(received.id, ack.reason)
        return taken


def repair(failed: Event, patch: Patch) -> Event:
    """Return the original event of a failed one, patched. A bare payload becomes an event first.

    Raises:
        EventError: the result is not an event.
    """
    try:
        payload = msgspec.json.decode(failed.raw_payload, type=_Failed)
        data = base64.b64decode(payload.data, validate=True)
    except (msgspec.DecodeError, ValueError) as error:
        raise EventError(f"not a failed_event: {split_refusal(error)[0]}") from None
    if payload.form != "json":
        raise EventError("was sent in protobuf, which no patch can change", "$.payload.form")
    try:
        check_keys(data, "$.payload.data")  # a patch would silently choose one of two equal keys
        members = msgspec.json.decode(data, type=dict[str, Raw])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise EventError(f"the original is not a JSON object: {split_refusal(error)[0]}", "$.payload.data") from None
    if "cls_type" in members:
        data = _wrap(failed, payload, data, members)
    return decode(patch.apply(data))


def _wrap(failed: Event, payload: _Failed, data: bytes, members: dict[str, Any]) -> bytes:
    name = msgspec.json.decode(members["cls_type"])
    channel = name if isinstance(name, str) and name else FAILED_EVENTS_TOPIC
    id = payload.event or "LG" + hashlib.sha256(failed.header.id.encode()).hexdigest()[:32]
    return encode(Event.new(channel, Raw(data.strip()), timestamp=failed.header.timestamp, id=id))
