"""The event: a facility layer for logging machinery, and a payload that it passes unchanged."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timezone
from functools import lru_cache
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

from balog.common.duplicate_keys import DuplicateKeyError, decode_once
from balog.common.errors import EventError, split_refusal
from balog.event.ids import new_id
from balog.event.key_access import KeyAccess

FACILITY_VERSION = "0.1.0"
"""The version of the facility layer that this library writes."""

KNOWN_VERSIONS = frozenset({"0.0.1", FACILITY_VERSION, "1.0.0"})  # checkouts before the first release wrote 1.0.0

MAX_EVENT_BYTES = 16 * 1024 * 1024
"""Largest size of an event; a larger document is rejected undecoded."""

MAX_CHANNEL_LENGTH = 1000
"""Largest number of characters of a channel's name."""

MAX_ID_LENGTH = 128
"""Largest number of characters of an event's id."""

Level = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]

LEVELS: dict[str, int] = {"DEBUG": 10, "INFO": 20, "WARNING": 30, "ERROR": 40, "CRITICAL": 50}
"""Level names with their numbers in the standard library's logging."""

_LEVEL_ALIASES: dict[str, Level] = {
    "DEBUG": "DEBUG",
    "INFO": "INFO",
    "WARNING": "WARNING",
    "WARN": "WARNING",
    "ERROR": "ERROR",
    "EXCEPTION": "ERROR",
    "CRITICAL": "CRITICAL",
    "FATAL": "CRITICAL",
}


def parse_level(text: str) -> Level | None:
    """Return the level of a name in any case (``warn``, ``Fatal`` …); None for other names."""
    return _LEVEL_ALIASES.get(text.upper())


class Header(KeyAccess, Struct, kw_only=True, forbid_unknown_fields=True):
    """The facility layer: id, time, origin and route. A key works as an attribute does: ``header["channel"]``.

    ``level`` is unset in facility 0.0.1, which has no levels. ``context`` holds ``fqdn``, ``application``,
    ``application_version``, ``process``, ``run_id``, ``trace_id``, ``span_id`` and any other key that was bound.
    """

    id: str
    channel: Annotated[str, Meta(min_length=1, max_length=MAX_CHANNEL_LENGTH)]
    timestamp: Annotated[datetime, Meta(tz=True)]
    level: Level | UnsetType = UNSET
    composition: bool = False
    context: dict[str, Any] = field(default_factory=dict)


class _PayloadHead(Struct):
    cls_type: Any = None  # may be anything; only text is a name
    version: Any = None


_payload_head = msgspec.json.Decoder(_PayloadHead)
_any = msgspec.json.Decoder()
_members = msgspec.json.Decoder(dict[str, Raw])
_encoder = msgspec.json.Encoder()


class Event(KeyAccess, Struct, kw_only=True, forbid_unknown_fields=True, dict=True):
    """One event. The payload stays undecoded until its first use, and its bytes stay as they are until it changes.

    A key works as an attribute does: ``event["payload"]["values"]``, ``event["header"]["channel"]``. The payload and
    the header may be changed in place or replaced; ``encode`` and ``raw_payload`` have the changes.
    """

    schema: str
    header: Header
    raw_payload: Raw = field(name="payload")
    """The payload's JSON."""

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
        if not _is_object(raw):
            raise EventError("expected an object", "$.payload")
        if not 1 <= len(channel) <= MAX_CHANNEL_LENGTH:
            raise EventError(f"expected 1 to {MAX_CHANNEL_LENGTH} characters", "$.header.channel")
        header = Header(
            id=id or new_id(),
            channel=channel,
            timestamp=_in_utc(timestamp) if timestamp else datetime.now(timezone.utc),
            level=level,
            composition=composition,
            context=context if context is not None else {},
        )
        return cls(schema=FACILITY_VERSION, header=header, raw_payload=raw)

    @property
    def payload(self) -> dict[str, Any]:
        """The payload as plain Python data, decoded at its first use. Changes of it are written."""
        state = self.__dict__
        if "payload" not in state:
            payload = state.pop("_view", None) or _read(_stored_payload(self), "$.payload")
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
            state["_view"] = _read(_stored_payload(self), "$.payload")
        return state["_view"]  # type: ignore[no-any-return]

    @property
    def has_changed_payload(self) -> bool:
        """Whether the payload has other values than its JSON had; then ``encode`` writes the values."""
        try:
            return "payload" in self.__dict__ and self._change() is not None
        except EventError:  # a value without a JSON form is new
            return True

    def _change(self) -> bytes | None:
        """Return the JSON of a payload that was changed; None for one that was not."""
        payload, old = self.__dict__["payload"], _stored_payload(self)
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
            payload = state["payload"]
            return _PayloadHead(*map(payload.get, _HEAD_KEYS)) if isinstance(payload, dict) else _PayloadHead()
        if "_head" not in state:
            try:
                state["_head"] = _payload_head.decode(self.raw_payload)
            except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
                state["_head"] = _PayloadHead()
        return state["_head"]  # type: ignore[no-any-return]

    def __copy__(self) -> Event:
        return _restore(self.schema, self.header, _stored_payload(self), dict(self.__dict__))

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.schema, self.header, _stored_payload(self), dict(self.__dict__))

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


_HEAD_KEYS = _PayloadHead.__struct_fields__
_stored_payload: Callable[[Event], Raw] = Event.__dict__["raw_payload"].__get__
_store_payload: Callable[[Event, Raw], None] = Event.__dict__["raw_payload"].__set__


def _raw_payload(event: Event) -> Raw:
    """Return the payload's JSON, with the changes of its values."""
    change = event._change() if "payload" in event.__dict__ else None
    if change is None:
        return _stored_payload(event)
    if change[:1] != b"{":
        raise EventError("expected an object", "$.payload")
    return Raw(change)


def _set_raw_payload(event: Event, raw: Raw) -> None:
    for derived in ("payload", "_view", "_head"):
        event.__dict__.pop(derived, None)
    _store_payload(event, raw)


# The encoder reads the field itself, without this property, which costs nothing on the path of unread payloads.
type.__setattr__(Event, "raw_payload", property(_raw_payload, _set_raw_payload))


def _restore(schema: str, header: Header, raw: Raw, state: dict[str, Any]) -> Event:
    """Make a copy of an event, also of what its fields don't have: changes, and unknown keys of a later version."""
    event = Event(schema=schema, header=header, raw_payload=raw)
    event.__dict__.update(state)
    return event


def _read(raw: Raw, path: str) -> Any:
    try:
        return _any.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise EventError(f"cannot be read: {split_refusal(error)[0]}", path) from None


_strict = msgspec.json.Decoder(Event)
_EVENT_KEYS = frozenset(item.encode_name for item in msgspec.structs.fields(Event))
_HEADER_KEYS = frozenset(item.encode_name for item in msgspec.structs.fields(Header))
_VERSION = re.compile(r"(0|[1-9]\d{0,8})(?:\.(?:0|[1-9]\d{0,8})){2}", re.ASCII)


@lru_cache(maxsize=64)
def _is_known(version: str) -> bool:
    """Return True for a known facility version, False for a later one of a known major version.

    Raises:
        EventError: the major version is another one, or the text is not a version.
    """
    if version in KNOWN_VERSIONS:
        return True
    match = _VERSION.fullmatch(version)
    if match is None:
        raise EventError(
            f"{version[:40]!r} is not a version (expected something like {FACILITY_VERSION!r})", "$.schema"
        )
    if match[1] == FACILITY_VERSION.partition(".")[0]:
        return False
    raise EventError(f"facility version {version} is not one that this release reads (0.x and 1.0.0)", "$.schema")


is_id = re.compile(f"[!-~]{{1,{MAX_ID_LENGTH}}}").fullmatch
"""Match an id: 1 to 128 visible ASCII characters. Balog's own are LG and 22 letters and digits, ordered by time."""


def check_id(text: str, path: str = "$.header.id") -> None:
    """Check the id of an event.

    Raises:
        EventError: the id is invalid; the error has ``path``.
    """
    if not is_id(text):
        raise EventError(f"expected 1 to {MAX_ID_LENGTH} visible characters of ASCII, without spaces", path)


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
    event = _decode_line(line)
    check_keys(line)
    return event


def decode_own(line: bytes) -> Event:
    """Decode an event that this process encoded, as ``decode`` does; its keys are not compared again."""
    return _decode_line(line)


def decode_checked(line: bytes, document: dict[str, Any]) -> Event:
    """Decode one event as ``decode`` does, with the document that ``check_keys`` has returned.

    Args:
        line: UTF-8.
        document: the decoded line, whose payload becomes the event's.

    Raises:
        EventError: the data is not a valid event; ``path`` is that of the problem.
    """
    event = _decode_line(line)
    event.__dict__["_view"] = document["payload"]
    return event


def _decode_line(line: bytes) -> Event:
    try:
        if len(line) > MAX_EVENT_BYTES:
            raise EventError(f"{len(line)} bytes; the limit is {MAX_EVENT_BYTES}")
        event = _strict.decode(line)
    except msgspec.ValidationError as refusal:
        event = _decode_later_version(line, EventError(*split_refusal(refusal)))
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise _not_json(error) from None
    header = event.header
    if not is_id(header.id):
        check_id(header.id)
    if not _is_object(event.raw_payload):
        raise EventError("expected an object", "$.payload")
    _is_known(event.schema)
    if header.level is UNSET and event.schema != "0.0.1":
        raise EventError("missing; each event since facility 0.1.0 has one", "$.header.level")
    if header.timestamp.tzinfo is not timezone.utc:
        header.timestamp = _in_utc(header.timestamp)
    return event


def _not_json(error: Exception) -> EventError:
    if isinstance(error, UnicodeError):
        return EventError(f"not UTF-8: {error}")
    if isinstance(error, RecursionError):
        return EventError("nested too deep to be read")
    return EventError(f"not JSON: {error}")


def _is_object(raw: Raw) -> bool:
    return bytes(memoryview(raw)[:1]) == b"{"


def _in_utc(timestamp: datetime) -> datetime:
    try:
        if timestamp.tzinfo is not None:
            return timestamp.astimezone(timezone.utc)
    except OverflowError:
        pass
    raise EventError(f"{timestamp.isoformat()} is no time in UTC", "$.header.timestamp")


def _decode_later_version(line: bytes, refusal: EventError) -> Event:
    """Decode an event of a later minor version, and keep its unknown keys encoded."""
    try:
        top = _members.decode(line)
        version = msgspec.json.decode(top["schema"], type=str)
        header = _members.decode(top["header"])
        if _is_known(version):
            timestamp = msgspec.json.decode(header["timestamp"], type=str)
            if version != "0.0.1" or (zoned := with_zone(timestamp)) == timestamp:
                raise refusal
            return _strict.decode(_encoder.encode({**top, "header": {**header, "timestamp": zoned}}))
    except (KeyError, msgspec.ValidationError):
        raise refusal from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise _not_json(error) from None
    unknown = {"": _take_unknown(top, _EVENT_KEYS), "header": _take_unknown(header, _HEADER_KEYS)}
    try:
        event = _strict.decode(_encoder.encode({**top, "header": header}))
    except msgspec.ValidationError as error:
        raise EventError(*split_refusal(error)) from None
    except RecursionError as error:
        raise _not_json(error) from None
    event.__dict__["_unknown"] = unknown
    return event


def with_zone(timestamp: str) -> str:
    """Return a timestamp of facility 0.0.1, which is in UTC if it has no zone; other texts stay as they are."""
    return timestamp + "Z" if _NAIVE.fullmatch(timestamp) else timestamp


_NAIVE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?", re.ASCII)


def _take_unknown(members: dict[str, Raw], known: frozenset[str]) -> dict[str, Raw]:
    return {key: members.pop(key) for key in list(members) if key not in known}


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
    if changed is _stored_payload(event):
        changed = None
    # msgspec leaves out a fraction of zero.
    if unknown or changed is not None or not event.header.timestamp.microsecond:
        header = msgspec.to_builtins(event.header)
        header["timestamp"] = event.header.timestamp.isoformat(timespec="microseconds").replace("+00:00", "Z")
        document = {"schema": event.schema, "header": header, "payload": changed or _stored_payload(event)}
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


_second: tuple[int, str] = (-1, "")
_THREE_DIGITS = tuple(f"{number:03d}" for number in range(1000))  # half the time that a format of six digits takes


def format_timestamp(nanoseconds: int) -> str:
    """Format nanoseconds since the epoch as RFC 3339 in UTC with microseconds."""
    global _second
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    known, text = _second
    if seconds != known:
        text = datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.")
        _second = (seconds, text)
    milliseconds, microseconds = divmod(rest // 1000, 1000)
    return f"{text}{_THREE_DIGITS[milliseconds]}{_THREE_DIGITS[microseconds]}Z"
