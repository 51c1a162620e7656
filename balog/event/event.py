"""The event: a facility layer for logging machinery, and a payload that it passes unchanged."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, field

from balog.common.duplicate_keys import DuplicateKeyError, decode_once
from balog.common.errors import EventError, split_refusal
from balog.event.facility import (
    FACILITY_VERSION,
    MAX_CHANNEL_LENGTH,
    Header,
    Level,
    adapt,
    in_utc,
    is_known,
)
from balog.event.ids import check_id, is_id, new_id
from balog.event.key_access import KeyAccess

MAX_EVENT_BYTES = 16 * 1024 * 1024
"""Largest size of an event; a larger document is rejected undecoded."""


class _PayloadHead(Struct):
    cls_type: Any = None  # may be anything; only text is a name
    version: Any = None


_payload_head = msgspec.json.Decoder(_PayloadHead)
_any = msgspec.json.Decoder()
_encoder = msgspec.json.Encoder()


class Event(KeyAccess, Struct, kw_only=True, forbid_unknown_fields=True, dict=True):
    """One event. The payload stays undecoded until its first use, and its bytes stay as they are until it changes.

    A key works as an attribute does: ``event["payload"]["values"]``, ``event["header"]["channel"]``. The payload and
    the header may be changed in place or replaced; ``encode`` and ``raw_payload`` have the changes.
    """

    schema: str
    header: Header
    stored_payload: Raw = field(name="payload")
    """The payload's JSON, without changes of ``payload``."""

    @classmethod
    def new(
        cls,
        channel: str,
        payload: Any,
        *,
        level: Level = "INFO",
        context: dict[str, Any] | None = None,
        timestamp: datetime | None = None,
        composition: bool = False,
        id: str = "",
    ) -> Event:
        """Create an event of the current facility version.

        Args:
            channel: dotted name of the route, ``tap_stripe.sync.done``; 1 to 1000 characters.
            payload: anything that encodes to a JSON object; ``Raw`` bytes are used unchanged.
            timestamp: aware; by default now.
            id: by default a new one.

        Raises:
            EventError: the channel, the payload or the timestamp is invalid.
        """
        raw = payload if isinstance(payload, Raw) else Raw(_encoder.encode(payload))
        if bytes(memoryview(raw)[:1]) != b"{":
            raise EventError("expected an object", "$.payload")
        if not 1 <= len(channel) <= MAX_CHANNEL_LENGTH:
            raise EventError(f"expected 1 to {MAX_CHANNEL_LENGTH} characters", "$.header.channel")
        header = Header(
            id=id or new_id(),
            channel=channel,
            timestamp=in_utc(timestamp) if timestamp else datetime.now(timezone.utc),
            level=level,
            composition=composition,
            context=context if context is not None else {},
        )
        return cls(schema=FACILITY_VERSION, header=header, stored_payload=raw)

    @property
    def payload(self) -> dict[str, Any]:
        """The payload as plain Python data, decoded at its first use. Changes of it are written."""
        state = self.__dict__
        if "payload" not in state:
            payload = state.pop("_view", None) or _read(self.stored_payload, "$.payload")
            state.setdefault("payload", payload)  # another thread may have been first
        return state["payload"]  # type: ignore[no-any-return]

    @payload.setter
    def payload(self, payload: dict[str, Any]) -> None:
        self.__dict__["payload"] = payload

    @property
    def payload_view(self) -> dict[str, Any]:
        """The payload for readers that don't change it, so ``encode`` need not look for changes."""
        state = self.__dict__
        if "payload" in state:
            return state["payload"]  # type: ignore[no-any-return]
        if "_view" not in state:
            state["_view"] = _read(self.stored_payload, "$.payload")
        return state["_view"]  # type: ignore[no-any-return]

    @property
    def raw_payload(self) -> Raw:
        """The payload's JSON, with the changes of its values."""
        change = self._change() if "payload" in self.__dict__ else None
        if change is None:
            return self.stored_payload
        if change[:1] != b"{":
            raise EventError("expected an object", "$.payload")
        return Raw(change)

    @raw_payload.setter
    def raw_payload(self, raw: Raw) -> None:
        for derived in ("payload", "_view", "_head"):
            self.__dict__.pop(derived, None)
        self.stored_payload = raw

    @property
    def has_changed_payload(self) -> bool:
        """Whether the payload has other values than its JSON had; then ``encode`` writes the values."""
        try:
            return "payload" in self.__dict__ and self._change() is not None
        except EventError:  # a value without a JSON form is new
            return True

    def _change(self) -> bytes | None:
        """Return the JSON of a payload that was changed; None for one that was not."""
        payload, old = self.__dict__["payload"], self.stored_payload
        try:
            new = _encoder.encode(payload)
            # Equal values are not enough: 1 == True.
            return None if new == bytes(old) or new == _encoder.encode(_read(old, "$.payload")) else new
        except EventError:
            return new
        except Exception as error:  # an object may run code of its own
            raise EventError(f"cannot be written: {error}", "$.payload") from None

    @property
    def _head(self) -> _PayloadHead:
        state = self.__dict__
        if "payload" in state:
            payload = state["payload"] if isinstance(state["payload"], dict) else {}
            return _PayloadHead(payload.get("cls_type"), payload.get("version"))
        if "_head" not in state:
            try:
                state["_head"] = _payload_head.decode(self.stored_payload)
            except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
                state["_head"] = _PayloadHead()
        return state["_head"]  # type: ignore[no-any-return]

    def __copy__(self) -> Event:
        return _restore(*self.__reduce__()[1])

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.schema, self.header, self.stored_payload, self.__dict__)

    def with_values(self, payload: Any = UNSET, **header: Any) -> Event:
        """Return a copy with another payload, if one is given, and other values of the header."""
        state = self.__dict__ if payload is UNSET else {**self.__dict__, "payload": payload}
        return _restore(self.schema, msgspec.structs.replace(self.header, **header), self.stored_payload, state)

    @property
    def cls_type(self) -> str | None:
        """The name of the payload's type; None if the payload does not declare one."""
        name = self._head.cls_type
        return name if isinstance(name, str) else None

    @property
    def version(self) -> str | None:
        """The version of the payload type's schema; None if the payload does not declare one."""
        version = self._head.version
        return version if isinstance(version, str) else None

    @property
    def raw_version(self) -> Any:
        """The payload's original ``version``, which may be anything; None if it is missing."""
        return self._head.version

    @property
    def level(self) -> Level | None:
        """The level; None in facility 0.0.1."""
        return None if self.header.level is UNSET else self.header.level

    @property
    def unknown(self) -> dict[str, dict[str, Any]]:
        """Unknown keys of a later facility version: ``{"": {…}, "header": {…}}``."""
        kept: dict[str, dict[str, Raw]] = self.__dict__.get("_unknown", {})
        return {part: {key: _read(raw, "$") for key, raw in members.items()} for part, members in kept.items()}


def _restore(schema: str, header: Header, raw: Raw, state: dict[str, Any]) -> Event:
    """Make a copy of an event, also of what its fields don't have: changes, and unknown keys of a later version."""
    event = Event(schema=schema, header=header, stored_payload=raw)
    event.__dict__.update(state)
    return event


def _read(raw: Raw, path: str) -> Any:
    try:
        return _any.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise EventError(f"cannot be read: {split_refusal(error)[0]}", path) from None


_strict = msgspec.json.Decoder(Event)
_KEYS = frozenset(item.encode_name for item in msgspec.structs.fields(Event))


def check_keys(document: bytes | Raw, path: str = "$") -> Any:
    """Check that no object of a JSON document has a duplicate key, however the two are spelled.

    Args:
        path: the path of the document itself, for the error.

    Returns:
        The document's value; None if msgspec can't decode it.

    Raises:
        EventError: a key is duplicate, or the document is nested too deep.
    """
    try:
        return decode_once(document)
    except DuplicateKeyError as error:
        raise EventError("this key is there twice; expected once", path + error.path.removeprefix("$")) from None
    except RecursionError as error:
        raise _not_json(error) from None


def decode(data: bytes | bytearray | memoryview | str) -> Event:
    """Decode one event, except for its payload, which is checked to be a JSON object. The timestamp is in UTC.

    Duplicate keys are rejected, even in the payload, because readers would not agree on the value.

    Raises:
        EventError: the data is not a valid event; ``path`` is that of the problem.
    """
    try:
        # Mutable bytes are copied, because the payload stays a view of them.
        line = data.encode() if isinstance(data, str) else bytes(data)
        if not isinstance(data, str):
            str(line, "utf-8")  # the payload stays undecoded, so nothing else checks its UTF-8
    except UnicodeError as error:
        raise _not_json(error) from None
    event = decode_own(line)
    check_keys(line)
    return event


def decode_checked(line: bytes, document: dict[str, Any]) -> Event:
    """Decode one event in UTF-8 as ``decode`` does; its payload is that of the document that ``check_keys`` returned.

    Raises:
        EventError: the data is not a valid event; ``path`` is that of the problem.
    """
    event = decode_own(line)
    event.__dict__["_view"] = document["payload"]
    return event


def decode_own(line: bytes) -> Event:
    """Decode an event that this process encoded, as ``decode`` does; its keys are not compared again."""
    try:
        if len(line) > MAX_EVENT_BYTES:
            raise EventError(f"{len(line)} bytes; the limit is {MAX_EVENT_BYTES}")
        event = _strict.decode(line)
    except msgspec.ValidationError as refusal:
        event = _decode_other_version(line, refusal)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise _not_json(error) from None
    header = event.header
    if not is_id(header.id):
        check_id(header.id)
    if bytes(memoryview(event.stored_payload)[:1]) != b"{":
        raise EventError("expected an object", "$.payload")
    is_known(event.schema)
    if header.level is UNSET and event.schema != "0.0.1":
        raise EventError("missing; each event since facility 0.1.0 has one", "$.header.level")
    if header.timestamp.tzinfo is not timezone.utc:
        header.use_utc()
    return event


def _not_json(error: Exception) -> EventError:
    if isinstance(error, UnicodeError):
        return EventError(f"not UTF-8: {error}")
    if isinstance(error, RecursionError):
        return EventError("nested too deep to be read")
    return EventError(f"not JSON: {error}")


def _decode_other_version(line: bytes, refusal: msgspec.ValidationError) -> Event:
    """Decode an event of an earlier or a later version, and keep its unknown keys encoded."""
    try:
        adapted = adapt(line, _KEYS)
        if adapted is None:
            raise refusal
        line, unknown = adapted
        event = _strict.decode(line)
    except msgspec.ValidationError as error:
        raise EventError(*split_refusal(error)) from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise _not_json(error) from None
    if unknown:
        event.__dict__["_unknown"] = unknown
    return event


def encode(event: Event) -> bytes:
    """Encode one event as compact JSON without a newline, with the unknown keys of a later version.

    A payload that was not changed keeps its bytes.

    Raises:
        EventError: a payload with line breaks is nested too deep to write on one line, or a changed payload is not an
            object or has values without a JSON form.
    """
    state = event.__dict__
    unknown: dict[str, dict[str, Raw]] | None = state.get("_unknown")
    changed = event.raw_payload if "payload" in state else None
    if changed is event.stored_payload:
        changed = None
    # msgspec leaves out a fraction of zero.
    if unknown or changed is not None or not event.header.timestamp.microsecond:
        header = msgspec.to_builtins(event.header)
        header["timestamp"] = event.header.timestamp.isoformat(timespec="microseconds").replace("+00:00", "Z")
        document = {"schema": event.schema, "header": header, "payload": changed or event.stored_payload}
        if unknown:
            header.update(unknown["header"])
            document.update(unknown[""])
        line = _encoder.encode(document)
    else:
        line = _encoder.encode(event)
    if 10 in line or 13 in line:  # an indented payload; in JSON, a raw newline is only white space
        try:
            return msgspec.json.format(line, indent=-1)
        except RecursionError:
            raise EventError("nested too deep to be written in one line") from None
    return line
