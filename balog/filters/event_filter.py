"""Which events a filter accepts, and the new payload of each, for every place where filters run."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

import msgspec
from msgspec import Raw

from balog.common.errors import ConfigError
from balog.event import Event, format_timestamp
from balog.event.ids import base62
from balog.filters import Expression

_ID_LENGTH = 24
_TIME_LENGTH = 10
"""What an id that balog made begins with says when: ``LG`` and eight digits of milliseconds."""

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_HEAD = ("cls_type", "version")


class EventFilter:
    """A condition, and a new payload for the events that meet it. Immutable, thread-safe, can be pickled.

    Without ``select`` an event passes as it is, with its id. With it, the event that comes out has the header of the
    one that came in except for the id, and a payload of ``cls_type``, ``version`` and the fields. Its id follows from
    the old id and ``name``, so that an event that is selected twice is one event. If the old id holds a time, the new
    one holds it, too. A field whose expression is NULL, or not a finite number, is left out. A time is written in
    RFC 3339, in UTC with microseconds.

    Args:
        name: of the filter.
        where: a condition; None takes all.
        select: field → expression over the event, see :mod:`balog.filters`.
        cls_type: of the new payload; needed with ``select``, and only there.
        version: of the new payload.

    Attributes:
        where: the condition.

    Raises:
        ConfigError: what is no expression, or fits not together; ``path`` is the member, ``select.FIELD``.
    """

    def __init__(
        self,
        name: str,
        where: str | None = None,
        select: Mapping[str, str] | None = None,
        cls_type: str | None = None,
        version: str | None = None,
    ) -> None:
        self._given = (name, where, dict(select) if select else None, cls_type, version)
        self._name = name.encode()
        self.where = _expression(where, "where", "bool") if where is not None else None
        self._fields: list[tuple[str, Callable[[Event], Any]]] | None = None
        if not select:
            for member, value in zip(_HEAD, (cls_type, version)):
                if value is not None:
                    raise ConfigError("needs select, because it describes a new payload", path=member)
            return
        if cls_type is None:
            raise ConfigError("a new payload needs its own type; set cls_type", path="cls_type")
        if twice := next((member for member in _HEAD if member in select), None):
            raise ConfigError(f"set the new payload's {twice} outside of select", path=f"select.{twice}")
        self._fields = [(key, _expression(text, f"select.{key}", "any").evaluate) for key, text in select.items()]
        self._head = {"cls_type": cls_type} if version is None else {"cls_type": cls_type, "version": version}

    def wants(self, event: Event) -> bool:
        """Return whether an event meets the condition."""
        return self.where is None or self.where.matches(event)

    def make(self, event: Event) -> Event:
        """Return an accepted event, with its new payload if the filter has one."""
        if self._fields is None:
            return event
        payload: dict[str, Any] = dict(self._head)
        for key, evaluate in self._fields:
            value = evaluate(event)
            if value.__class__ is datetime:
                value = _time(value)
            if value is not None and not (value.__class__ is float and not math.isfinite(value)):
                payload[key] = value
        header = msgspec.structs.replace(event.header, id=self._id(event.header.id))
        return Event(schema=event.schema, header=header, stored_payload=Raw(_encode(payload)))

    def _id(self, old: str) -> str:
        number = int.from_bytes(hashlib.sha256(old.encode() + b"\0" + self._name).digest()[:16], "big")
        is_ours = len(old) == _ID_LENGTH and old.startswith("LG") and old.isascii() and old.isalnum()
        front = old[:_TIME_LENGTH] if is_ours else "LG"
        return front + base62(number, _ID_LENGTH - len(front))[::-1]

    def __reduce__(self) -> tuple[Any, ...]:
        return EventFilter, self._given


def _expression(text: str, path: str, gives: Any) -> Expression:
    try:
        return Expression(text, gives=gives)
    except ConfigError as error:
        raise ConfigError(error.reason, path=path) from None


def _time(moment: datetime) -> str:
    return format_timestamp((moment - _EPOCH) // timedelta(microseconds=1) * 1000)


def _encode(payload: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(payload)
    except OverflowError:  # an integer of more than 64 bits, which JSON may have
        return json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode()
