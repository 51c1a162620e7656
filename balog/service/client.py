"""The client that sends events to an event service."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import structs

from balog.common.backoff import Backoff, BackoffSequence
from balog.common.errors import BalogError, ConfigError
from balog.common.http import HttpStatusError
from balog.common.secrets import Secret
from balog.event import Event, encode
from balog.event.batches import split
from balog.sinks.base import Batching, SinkError
from balog.sinks.service import Item, ServiceApi, ServiceSinkConfig

_MAX_REQUEST_EVENTS = 1000
_MAX_REQUEST_BYTES = 4 << 20
_SHORTEST_TIMEOUT = 0.05  # seconds for an answer, when the time is all but over


class DeliveryError(BalogError):
    """The service did not acknowledge every event.

    Attributes:
        acks: the answers received, by the index of the event.
        unsent: the events without an answer. The service may have stored some of them. Sent again with their ids, they
            are stored once.
        retryable: whether a retry can help.
    """

    def __init__(
        self, reason: str, acks: Mapping[int, Item], unsent: Sequence[Event], *, retryable: bool = True
    ) -> None:
        super().__init__(reason)
        self.retryable = retryable
        self.acks = dict(acks)
        self.unsent = list(unsent)


class ServiceClient:
    """Sends events to ``balog serve``. Thread-safe; a forked child opens its own connections.

    Use it as a context manager, or ``close`` it.

    ::

        with ServiceClient("https://events.example.com", token=Secret(env="BALOG_TOKEN")) as client:
            [ack] = client.send([{"cls_type": "order", "version": "1.0.0", "price": 12}])

    The client turns a payload into an event with an id, so that retries store it once. To queue events, also on disk
    while the service is unreachable, log them with an output for the service.

    Args:
        url: URL of the service.
        token: bearer token.
        gzip: compress requests.
        timeout: seconds to connect, and to wait for each answer.
        ca_file: PEM file of the trusted authorities, instead of the system's.

    Raises:
        ConfigError: not a URL, or a missing token.
    """

    def __init__(
        self,
        url: str,
        *,
        token: Secret | None = None,
        gzip: bool = False,
        timeout: float = 30.0,
        ca_file: str | None = None,
    ) -> None:
        self._config = ServiceSinkConfig(
            url=url,
            token=token,
            gzip=gzip,
            timeout=timeout,
            ca_file=ca_file,
            batch=Batching(events=_MAX_REQUEST_EVENTS, bytes=_MAX_REQUEST_BYTES),
        )
        self._opened = [(os.getpid(), self._config.api())]

    @property
    def _api(self) -> ServiceApi:
        """The connections of this process. A forked child neither uses nor closes those of its parent."""
        if self._opened[-1][0] != os.getpid():
            self._opened.append((os.getpid(), self._config.api()))
        return self._opened[-1][1]

    def send(
        self, items: Iterable[Event | Mapping[str, Any]], timeout: float = 30.0, *, keep_failed: bool = True
    ) -> list[Item]:
        """Send events, or payloads with their ``cls_type``, and wait for the service's answer to each.

        Events that the service has no room for are retried, also while it is unreachable: with backoff, or after the
        time that the service requests, for up to ``timeout`` seconds.

        Args:
            keep_failed: the service stores rejected events in the topic ``failed_events``.

        Returns:
            An ``Item`` for each event, in order. Status 202 means stored; any other status is a rejection.

        Raises:
            DeliveryError: there is no answer for some events.
            ConfigError: a payload has no ``cls_type``.
        """
        events = [_event_of(item) for item in items]
        bodies = [encode(event) for event in events]
        delays = BackoffSequence(Backoff(0.1, 5.0))
        until = time.monotonic() + timeout
        acks: dict[int, Item] = {}
        pending = list(range(len(events)))
        reason = ""
        while pending:
            try:
                asked = self._send_once(bodies, pending, acks, keep_failed, until)
                reason = "" if asked is None else "it has no room"
            except SinkError as error:
                asked, reason = error.retry_after, str(error)
                if not error.retryable:
                    unsent = [events[number] for number in pending if number not in acks]
                    raise DeliveryError(reason, acks, unsent, retryable=False) from None
            pending = [number for number in pending if number not in acks]
            wait = delays.next(asked)
            if pending and time.monotonic() + wait > until:
                raise DeliveryError(
                    f"{self._api.client.place}: {len(pending)} of {len(events)} events not acked in {timeout:g} "
                    f"seconds: {reason}",
                    acks,
                    [events[number] for number in pending],
                )
            if pending:
                time.sleep(wait)
        return [acks[number] for number in range(len(events))]

    def _send_once(
        self, bodies: Sequence[bytes], pending: Sequence[int], acks: dict[int, Item], keep_failed: bool, until: float
    ) -> float | None:
        """Send the pending events and record the answers. Return the seconds that the service asks to wait."""
        asked: float | None = None
        parts = list(split(pending, lambda number: len(bodies[number]), _MAX_REQUEST_BYTES, _MAX_REQUEST_EVENTS))
        while parts:
            part = parts.pop(0)
            try:
                answer = self._api.post(
                    [bodies[number] for number in part],
                    only_failed=False,
                    keep_failed=keep_failed,
                    timeout=min(self._config.timeout, max(until - time.monotonic(), _SHORTEST_TIMEOUT)),
                )
            except HttpStatusError as error:
                if error.answer.status != 413:
                    raise
                if len(part) == 1:
                    acks[part[0]] = Item(413)
                else:
                    parts[:0] = [part[: len(part) // 2], part[len(part) // 2 :]]
                continue
            if len(answer.items) != len(part):
                raise SinkError(f"{self._api.client.place} does not answer as an event service does")
            for number, item in zip(part, answer.items):
                if item.status == 429 or item.status >= 500:
                    asked = max(asked or 0.0, item.retry_after or 0.0)
                else:
                    acks[number] = structs.replace(item, index=number)
        return asked

    def close(self) -> None:
        """Close the connections."""
        self._api.close()

    def __enter__(self) -> ServiceClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _event_of(item: Event | Mapping[str, Any]) -> Event:
    if isinstance(item, Event):
        return item
    name = item.get("cls_type")
    if not isinstance(name, str) or not name:
        raise ConfigError("a payload names its type: expected a text in cls_type", path="$.cls_type")
    return Event.new(name, dict(item))
