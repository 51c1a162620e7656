"""Reading of a tap's output as a target would, keeping only what the rules need."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from balog.singer import parse_log
from balog.singer.bookmarks import bookmark_of
from balog.singer.messages import to_event
from balog.tap.json_schema.keywords import is_names
from balog.tap.verify.leaks import Leaks
from balog.tap.verify.logs import Logs
from balog.tap.verify.synced_stream import SyncedStream

MAX_LINE = 16 * 1024 * 1024
"""Maximum bytes of a line; a longer line ends the run."""

_MAX_INVALID = 10_000
_KEPT_LINES = 20
_STATES_KEPT = 256
_STATES_SIZE = 8 * 1024 * 1024
_MAX_STREAMS = 10_000
_decode = msgspec.json.Decoder().decode


class InvalidLine(Struct, frozen=True):
    """A line that targets cannot read: its number (from 1) and the reason, as a clause without the line's content."""

    line: int
    reason: str


class StateLine(Struct, frozen=True, kw_only=True):
    """A STATE: its line, its value, the records of each stream before it, and their approximate size in bytes."""

    line: int
    value: Any
    records: dict[str, int]
    size: int = 0


class KnownStreams(Struct, frozen=True, kw_only=True):
    """What is known about the streams before a run.

    Attributes:
        replication_keys: by stream name in messages.
        ids: the ``tap_stream_id`` by stream name. States use it, and some taps use it in messages, too.
        state: the initial state of the run.
    """

    replication_keys: Mapping[str, str] = {}
    ids: Mapping[str, str] = {}
    state: Any = None


class OutputReader:
    """Reads the outputs of a run. See ``OutputHandler``.

    Args:
        leaks: searches each line for secrets.
        known: the streams before the run.
        most: maximum number of records; the run is ended there.
        interrupt_after: number of records after which the run is interrupted; 0 means never.

    Attributes:
        lines: number of lines of stdout.
        records: number of RECORD messages.
        invalid: the first invalid lines; ``invalid_count`` is the number of all.
        unknown: the first messages of types that Singer does not have; ``unknown_count`` is the number of all.
        broken: the first messages with missing or wrong fields.
        streams: the streams by name, in order of appearance.
        states: the first STATE and an even sample of the others; ``last_state`` is the last one, ``state_count`` the
            number of all.
        bad_states: the line of the first STATE whose value is not an object; 0 if there is none.
        syncing_states: number of STATEs with ``currently_syncing``.
        tail: the rest after the last newline: "" for nothing, ``message`` for a complete message, else ``torn``.
        logs: the log lines of the run.
        leaks: the secrets that were found.
    """

    def __init__(self, leaks: Leaks, known: KnownStreams, *, most: int, interrupt_after: int = 0) -> None:
        self.leaks = leaks
        self._known = known
        self._most = most
        self._interrupt_after = interrupt_after
        self._names = {stream_id: name for name, stream_id in known.ids.items() if stream_id not in known.ids}
        self._partial: list[bytes] = []
        self._partial_size = 0
        self._state_step = 1
        self._states_size = 0
        self.lines = self.records = 0
        self.invalid: list[InvalidLine] = []
        self.invalid_count = 0
        self.unknown: list[InvalidLine] = []
        self.unknown_count = 0
        self.broken: list[InvalidLine] = []
        self.kinds: Counter[str] = Counter()
        self.streams: dict[str, SyncedStream] = {}
        self.states: list[StateLine] = []
        self.last_state: StateLine | None = None
        self.state_count = self.bad_states = self.syncing_states = 0
        self.tail = ""
        self.logs = Logs(leaks)

    def stdout(self, data: bytes) -> str:
        """See ``OutputHandler``."""
        head, newline, rest = data.partition(b"\n")
        self._partial.append(head)
        self._partial_size += len(head)
        if self._partial_size > MAX_LINE:
            self.lines += 1
            self._add_invalid(f"longer than {MAX_LINE >> 20} MiB")
            self._partial, self._partial_size = [], 0
            return "line"
        if not newline:
            return ""
        lines = [b"".join(self._partial), *rest.split(b"\n")]
        self._partial = [lines.pop()]
        self._partial_size = len(self._partial[0])
        for line in lines:
            self._line(line)
            if self.records >= self._most:
                return "records"
            if self.invalid_count + self.unknown_count >= _MAX_INVALID:
                return "junk"  # a value of the report, which is a public format
            if len(self.streams) > _MAX_STREAMS:
                return "streams"
        return "interrupt" if 0 < self._interrupt_after <= self.records else ""

    def close(self, *, cut: bool) -> None:
        """See ``OutputHandler``."""
        rest = b"".join(self._partial)
        if rest and not cut:
            before = self.invalid_count + len(self.broken)
            self._line(rest)
            self.tail = "torn" if self.invalid_count + len(self.broken) > before else "message"
        self.logs.close()

    def _line(self, line: bytes) -> None:
        self.lines += 1
        self.leaks.search_line(line, "stdout", self.lines)
        try:
            message = _decode(line)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            self._add_invalid(_why(line))
            return
        if not isinstance(message, dict):
            self._add_invalid("no JSON object")
            return
        kind = message.get("type")
        if not isinstance(kind, str):
            self._add_invalid("an object without a type")
            return
        kind = kind.upper()
        if kind in self._adders:
            self.kinds[kind] += 1
            self.records += kind == "RECORD"
            if kind == "STATE" or isinstance(message.get("stream"), str):
                reason = self._adders[kind](self, message, line)
            else:
                reason = "without the name of its stream"
            if reason:
                self._note(self.broken, f"a {kind} {reason}")
        elif not self._log(line):
            self.unknown_count += 1
            self._note(self.unknown, "of an unknown type")

    def _add_invalid(self, reason: str) -> None:
        self.invalid_count += 1
        self._note(self.invalid, reason)

    def _note(self, where: list[InvalidLine], reason: str) -> None:
        if len(where) < _KEPT_LINES:
            where.append(InvalidLine(self.lines, reason))

    def _stream(self, name: str) -> SyncedStream:
        name = self._names.get(name, name)
        stream = self.streams.get(name)
        if stream is None:
            known = self._known
            key = known.replication_keys.get(name, "")
            began = bookmark_of(known.state, known.ids.get(name, name), key)
            stream = self.streams[name] = SyncedStream(name, key, began)
        return stream

    def _record(self, message: dict[str, Any], line: bytes) -> str:
        name, record, version = message["stream"], message.get("record"), message.get("version")
        if not isinstance(record, dict):
            return "whose record is not an object"
        is_version = isinstance(version, int) and not isinstance(version, bool)
        self._stream(name).add_record(record, len(line) + 1, self.lines, version if is_version else None)
        return "" if is_version or version is None else "whose version is not an integer"

    def _schema(self, message: dict[str, Any], line: bytes) -> str:
        name, schema = message["stream"], message.get("schema")
        keys, bookmarks = message.get("key_properties"), message.get("bookmark_properties")
        if not isinstance(schema, dict):
            return "whose schema is not an object"
        stream = self._stream(name)
        marks = [bookmarks] if isinstance(bookmarks, str) else _names(bookmarks)
        stream.add_schema(schema, _names(keys) or [], marks)
        if keys is None:
            return "without key_properties"
        if _names(keys) is None:
            return "whose key_properties are not a list of names"
        return "" if bookmarks is None or marks is not None else "whose bookmark_properties are not a list of names"

    def _state(self, message: dict[str, Any], line: bytes) -> str:
        value = message.get("value")
        self.state_count += 1
        if not isinstance(value, dict):
            self.bad_states = self.bad_states or self.lines
            return "" if "value" in message else "without a value"
        counts = {name: stream.records for name, stream in self.streams.items()}
        self.last_state = StateLine(line=self.lines, value=value, records=counts, size=len(line) + 100 * len(counts))
        if (self.state_count - 1) % self._state_step == 0:
            self.states.append(self.last_state)
            self._states_size += self.last_state.size
            while len(self.states) >= _STATES_KEPT or (self._states_size > _STATES_SIZE and len(self.states) > 1):
                del self.states[1::2]
                self._state_step *= 2
                self._states_size = sum(state.size for state in self.states)
        self.syncing_states += bool(value.get("currently_syncing"))
        for name, stream in self.streams.items():
            if stream.replication_key:
                stream.add_bookmark(bookmark_of(value, self._known.ids.get(name, name), stream.replication_key))
        return ""

    def _activate(self, message: dict[str, Any], line: bytes) -> str:
        version = message.get("version")
        if not isinstance(version, int) or isinstance(version, bool):
            return "whose version is not an integer"
        stream = self._stream(message["stream"])
        if len(stream.activated) < _KEPT_LINES:
            stream.activated.append((version, stream.records))
        return ""

    def _batch(self, message: dict[str, Any], line: bytes) -> str:
        self._stream(message["stream"]).add_batch()
        return ""

    def _log(self, line: bytes) -> bool:
        log = parse_log(line)
        if log is None:
            return False
        self.kinds["LOG"] += 1
        self.logs.add_event(to_event(log)[0])
        return True

    _adders: Mapping[str, Callable[[OutputReader, dict[str, Any], bytes], str]] = {
        "RECORD": _record,
        "SCHEMA": _schema,
        "STATE": _state,
        "ACTIVATE_VERSION": _activate,
        "BATCH": _batch,
    }


def _names(value: Any) -> list[str] | None:
    return value if is_names(value) else None


def _why(line: bytes) -> str:
    """Return why a line is not JSON."""
    if not line.strip():
        return "an empty line"
    try:
        json.loads(line.decode())
    except UnicodeDecodeError:
        return "not UTF-8"
    except (ValueError, RecursionError):
        return "no JSON object"
    return "JSON only for Python (NaN, Infinity or half a surrogate pair)"
