"""``POST /v1/events``: accepts events, and answers for each of them once it is durable."""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from urllib.parse import parse_qsl

import msgspec

from balog.service.api.bodies import Form, Receive, content_form, inflate, read_body, split
from balog.service.api.context import ServiceContext
from balog.service.api.endpoints import principal_of
from balog.service.api.errors import ApiError
from balog.service.api.item_reader import ProtobufParameters, RejectedItem, SchemaNotCached
from balog.service.api.tokens import TokenEntry
from balog.service.intake.batch import AcceptedEvent, IntakeResult
from balog.sinks.service import Answer, Item, Problem

_IN_LOOP_BYTES = 64 << 10
"""A larger body is read in a thread, because it would delay other requests by more than a few milliseconds."""

_Read = list[AcceptedEvent | RejectedItem]
_KEY = re.compile("[!-~]{1,200}")
_encoder = msgspec.json.Encoder()


class Reply:
    """An answer: its status, the seconds of ``Retry-After``, and the body."""

    __slots__ = ("body", "retry_after", "status")

    def __init__(self, answer: Answer, only_failed: bool) -> None:
        items = answer.items
        statuses = {item.status for item in items}
        if answer.accepted:
            self.status = 202
        else:
            self.status = statuses.pop() if len(statuses) == 1 else 422
        waits = [item.retry_after for item in items if item.retry_after is not None]
        self.retry_after = math.ceil(max(waits)) if waits else None
        if only_failed:
            failed = (
                msgspec.structs.replace(item, index=index) for index, item in enumerate(items) if item.status != 202
            )
            answer = msgspec.structs.replace(answer, items=tuple(failed))
        self.body = _encoder.encode(answer) + b"\n"


class EventsApi:
    """Accepts events for a service. Used only in its event loop."""

    def __init__(self, service: ServiceContext) -> None:
        self._service = service
        self._limits = service.config.limits
        self._budget = service.request_budget

    async def post(self, query: bytes, headers: Mapping[str, str], receive: Receive) -> Reply:
        """Accept the events of one request.

        Args:
            headers: with names in lower case.

        Raises:
            ApiError: the request is rejected as a whole.
            ClientDisconnected: the client disconnected before its request was complete; nothing of it is stored.
        """
        begin = time.perf_counter()
        service = self._service
        caller = principal_of(service, headers.get("authorization", ""))
        caller.check("send")
        if service.is_stopping:
            raise _stopping()
        form = content_form(headers.get("content-type", ""))
        options = _options(query, form)
        key = headers.get("idempotency-key")
        if key is not None and not _KEY.fullmatch(key):
            raise ApiError(400, "Idempotency-Key: expected 1 to 200 visible characters of ASCII")
        body = await read_body(receive, headers, self._limits.body_bytes, self._budget)
        size = len(body)
        try:
            service.metrics.add("body_bytes", size)
            encoding = headers.get("content-encoding", "")
            if not body and "upgrade" in headers:  # the parser takes the body for another protocol
                raise ApiError(
                    400, "expected HTTP/1.1 and no Upgrade, which loses the body", headers={"Connection": "close"}
                )
            protobuf = _protobuf_parameters(options, caller) if form == "protobuf" else None

            def read(body: bytes) -> tuple[list[bytes], _Read | None]:
                items = split(body, form, self._limits.events)
                try:
                    return items, service.reader.read(items, caller, key or "", protobuf, may_wait=False)
                except SchemaNotCached:
                    return items, None

            if encoding or size > _IN_LOOP_BYTES:
                inflated = await asyncio.to_thread(inflate, body, encoding, self._limits.inflated_bytes)
                if inflated is not body:
                    self._budget.acquire(len(inflated))
                    size += len(inflated)
                items, outcomes = await asyncio.to_thread(read, inflated)
            else:
                items, outcomes = read(body)
            if outcomes is None:
                slowly = partial(service.reader.read, items, caller, key or "", protobuf, may_wait=True)
                outcomes = await service.readers.submit(slowly).future
            if service.is_stopping:
                raise _stopping()
            answer = await self._store(items, outcomes, form, caller, protobuf, options.get("failed") != "drop")
        finally:
            self._budget.release(size)
        service.metrics.observe_request(time.perf_counter() - begin)
        return Reply(answer, options.get("items") == "failed")

    async def _store(
        self,
        items: Sequence[bytes],
        outcomes: _Read,
        form: Form,
        caller: TokenEntry,
        protobuf: ProtobufParameters | None,
        keeps_failed: bool,
    ) -> Answer:
        """Store the valid events, and the rejected ones as failed events unless the sender keeps them."""
        service = self._service
        channel = protobuf.channel if protobuf is not None else None
        wanted: list[AcceptedEvent] = []
        places: list[int | None] = []  # of each item in `wanted`
        dropped = 0
        for item, outcome in zip(items, outcomes):
            event: AcceptedEvent | None = outcome if isinstance(outcome, AcceptedEvent) else None
            if keeps_failed and isinstance(outcome, RejectedItem) and outcome.status == 422:
                event = service.failed.make(item, outcome, form, caller.name, channel)
                dropped += event is None
            places.append(None if event is None else len(wanted))
            if event is not None:
                wanted.append(event)
        placed = await service.intake.put(wanted) if wanted else []
        acks: list[Item] = []
        counts: Counter[tuple[str, int, str]] = Counter()
        stores: Counter[str] = Counter()
        stored = duplicates = 0
        for outcome, at in zip(outcomes, places):
            if isinstance(outcome, RejectedItem):
                wait = 1.0 if outcome.status == 503 else None
                acks.append(Item(status=outcome.status, id=outcome.id, problems=outcome.problems, retry_after=wait))
                dropped += at is not None and placed[at].status != 202
                # Unknown names would create an unbounded number of series.
                stream = service.intake.stream_of(outcome.type) if outcome.is_known else ""
                counts[(stream, outcome.status, "")] += 1
            elif at is not None:
                result = placed[at]
                acks.append(_item(outcome.event.header.id, result))
                counts[(result.stream, result.status, result.store)] += 1
                if result.status == 202:
                    stores[result.store] += 1
                    stored += len(outcome.body)
                    duplicates += result.duplicate
        service.metrics.add("failed_unkept", dropped)
        service.metrics.count_events(counts)
        service.metrics.add("event_bytes", stored)
        service.metrics.add("duplicates", duplicates)
        accepted = sum(stores.values())
        return Answer(accepted, len(acks) - accepted, dict(stores), tuple(acks))


def _item(id: str, result: IntakeResult) -> Item:
    if result.status == 202:
        return Item(status=202, id=id, store=result.store, duplicate=result.duplicate)
    return Item(
        status=result.status,
        id=id,
        problems=(Problem("$", result.reason),) if result.reason else (),
        retry_after=round(result.retry_after, 3) if result.status in (429, 503) else None,
        stream=result.stream,
    )


def _stopping() -> ApiError:
    return ApiError(503, "the service is stopping", retry_after=1, headers={"Connection": "close"})


def _options(query: bytes, form: Form) -> dict[str, str]:
    """Parse the query, and reject unknown parameters."""
    if not query:
        return {}
    parameters = dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True))
    known = {"items", "failed", "type", "version", "channel"} if form == "protobuf" else {"items", "failed"}
    for name in parameters:
        if name not in known:
            hint = "; it is for application/x-protobuf" if name in ("type", "version", "channel") else ""
            raise ApiError(400, f"there is no parameter {name!r:.60}{hint}")
    if parameters.get("items", "all") not in ("all", "failed"):
        raise ApiError(400, "items: expected all or failed")
    if parameters.get("failed", "keep") not in ("keep", "drop"):
        raise ApiError(400, "failed: expected keep or drop")
    return parameters


def _protobuf_parameters(options: Mapping[str, str], caller: TokenEntry) -> ProtobufParameters:
    type = options.get("type", "")
    if not type:
        raise ApiError(400, "protobuf needs the parameter type, and version: /v1/events?type=NAME&version=1.0.0")
    if not caller.is_for(type):
        raise ApiError(403, f"the token {caller.name} is not for this type")
    return ProtobufParameters(type, options.get("version") or None, options.get("channel") or None)
