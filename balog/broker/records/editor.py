"""Change RECORD and SCHEMA messages by the rules of a broker's config."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from balog.broker.editor import Editor, Line, PipeError
from balog.broker.quarantine import Quarantine
from balog.broker.records.compiled_rule import CompiledRule
from balog.broker.records.config import RecordRule
from balog.broker.records.json_members import (
    Members,
    UnreadableError,
    check_line_end,
    check_message,
    has_key_twice,
    read_members,
    read_value,
    write,
)
from balog.broker.records.rules import StreamRules

_PATTERN = frozenset("*?[")


class _Usual(Struct, tag_field="type", tag="RECORD", forbid_unknown_fields=True):
    """A RECORD in the usual form, which is parsed and written in one step."""

    stream: str
    record: Members
    version: Raw | UnsetType = UNSET
    time_extracted: Raw | UnsetType = UNSET

    def line(self, record: Members) -> bytes:
        """Return the line of this message with another record."""
        return write(_Usual(self.stream, record, self.version, self.time_extracted)) + b"\n"


_usual = msgspec.json.Decoder(_Usual).decode


class RecordEditor(Editor):
    """Changes the messages of the streams that have rules.

    A message that can't be read, or changed by its rules, goes to quarantine with the reason. Without a quarantine, it
    ends the stream, because an unmasked value must not pass. The same rules apply to a RECORD before its stream's
    SCHEMA, but without the keys, which only a SCHEMA declares.

    Args:
        rules: ``records`` of the config.
        quarantine: the file for lines that must not pass; its owner closes it.
        say: called once for each probable mistake in the rules.

    Raises:
        ConfigError: an expression, or the key of a mask, was refused; ``path`` is its place in the config.
    """

    is_strict = True
    types = frozenset({"RECORD", "SCHEMA"})

    def __init__(
        self,
        rules: Sequence[RecordRule],
        quarantine: Quarantine | None,
        say: Callable[[str], None],
    ) -> None:
        self._rules = [CompiledRule(rule, f"$.records[{number}]") for number, rule in enumerate(rules)]
        self._quarantine = quarantine
        self._say = say
        self._streams: dict[str, _Stream] = {}
        named = [rule.stream for rule in rules]
        self.streams = None if any(_PATTERN.intersection(name) for name in named) else frozenset(named)

    def rules_for(self, name: str) -> _Stream | None:
        """Return the rules of a stream; None without rules."""
        stream = self._streams.get(name)
        if stream is None:
            rules = [rule for rule in self._rules if _is_for(rule.config.stream, name)]
            if not rules:
                return None
            stream = self._streams[name] = _Stream(name, rules, self._say)
        return stream

    def edit(self, kind: str, line: bytes) -> Sequence[Line] | None:
        """See ``Editor``. The line's own type counts, even if ``kind`` differs."""
        try:
            try:
                usual = _usual(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # not a RECORD in the usual form
                return self._edit(line)
            stream = self._streams.get(usual.stream)
            if stream is None:
                return self._edit(line)
            if b"\r" in line:
                check_line_end(line)
            return stream.edit_usual(usual, line)
        except UnreadableError as error:
            return self._refuse(f"a {kind} cannot be read: {error}", line)
        except PipeError:
            raise
        except Exception as error:  # after any error, an unmasked message must not pass
            return self._refuse(f"a {kind} cannot be changed: {type(error).__name__}", line)

    def _refuse(self, reason: str, line: bytes) -> Sequence[Line]:
        if self._quarantine is None:
            raise PipeError(
                f"{reason}, and must not pass since its stream may have rules; "
                "with a quarantine in the config the stream goes on without such lines"
            )
        self._quarantine.put(reason, line)
        return ()

    def _edit(self, line: bytes) -> Sequence[Line] | None:
        check_message(line)
        envelope = read_members(line)
        kind = _text(envelope, "type").upper()
        if kind not in ("RECORD", "SCHEMA"):
            return None
        stream = self.rules_for(_text(envelope, "stream"))
        if stream is None:
            return None
        return stream.edit_record(envelope) if kind == "RECORD" else stream.edit_schema(envelope)


def _is_for(pattern: str, name: str) -> bool:
    return pattern == name or fnmatchcase(name, pattern)


class _Stream(StreamRules):
    """The rules of one stream, applied to its messages."""

    def __init__(self, name: str, rules: Sequence[CompiledRule], say: Callable[[str], None]) -> None:
        super().__init__(name, rules)
        self._say = say
        self._has_reported: set[str] = set()

    def edit_usual(self, message: _Usual, line: bytes) -> Sequence[Line] | None:
        """See ``Editor.edit``."""
        record = self.apply(message.record)
        if record is None:
            return ()
        if not self.rewrites and not _loses_members(message, line):
            return None
        return (("RECORD", message.line(record)),)

    def edit_record(self, envelope: Members) -> Sequence[Line] | None:
        """See ``Editor.edit``."""
        raw = envelope.get("record")
        if raw is None:
            raise UnreadableError("it has no record")
        record = self.apply(read_members(raw))
        if record is None:
            return ()
        if not self.rewrites and not has_key_twice(raw):
            return None
        return (("RECORD", write({**envelope, "record": record}) + b"\n"),)

    def edit_schema(self, envelope: Members) -> Sequence[Line] | None:
        """See ``Editor.edit``."""
        given = _read(envelope, "schema")
        if not isinstance(given, dict):
            raise UnreadableError("its schema is not an object")
        keys, bookmarks = _names(envelope, "key_properties"), _names(envelope, "bookmark_properties")
        described = self.apply_schema(given, keys, bookmarks)
        for problem in described.unknown:
            if problem not in self._has_reported:
                self._has_reported.add(problem)
                self._say(problem)
        changes = {
            name: Raw(write(new))
            for name, old, new in (
                ("key_properties", keys, described.keys),
                ("bookmark_properties", bookmarks, described.bookmarks),
                ("schema", given, described.root),
            )
            if new != old
        }
        return (("SCHEMA", write({**envelope, **changes}) + b"\n"),) if changes else None


def _loses_members(message: _Usual, line: bytes) -> bool:
    """Return whether the line has a duplicate key, in the message or its record, which the struct has lost."""
    return b"\\u003" in line or line.count(b":") != write(message).count(b":")


def _text(envelope: Members, name: str) -> str:
    value = _read(envelope, name)
    if not isinstance(value, str):
        raise UnreadableError(f"it has no {name}")
    return value


def _read(envelope: Members, name: str) -> Any:
    raw = envelope.get(name)
    return None if raw is None else read_value(raw)


def _names(envelope: Members, name: str) -> list[str] | None:
    names = _read(envelope, name)
    if names is not None and not (isinstance(names, list) and all(isinstance(item, str) for item in names)):
        raise UnreadableError(f"its {name} are no list of names")
    return names
