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
from balog.broker.records.config import RecordRule, SchemaRule
from balog.broker.records.enrichment import Enrichment
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
        schema_rules: ``schemas`` of the config.
        quarantine: the file for lines that must not pass; its owner closes it.
        say: called once for each probable mistake in the rules.

    Raises:
        ConfigError: an expression, or the key of a mask, was refused; ``path`` is its place in the config.
    """

    def __init__(
        self,
        rules: Sequence[RecordRule],
        schema_rules: Sequence[SchemaRule],
        quarantine: Quarantine | None,
        say: Callable[[str], None],
    ) -> None:
        self._rules = [CompiledRule(rule, f"$.records[{number}]") for number, rule in enumerate(rules)]
        self._schema_rules = list(schema_rules)
        self._quarantine = quarantine
        self._say = say
        self._streams: dict[str, _Stream] = {}
        named = [rule.stream for rule in rules] + [rule.stream for rule in schema_rules if rule.from_records]
        self.types = frozenset({"RECORD", "SCHEMA"} if named else {"SCHEMA"})
        self.is_strict = bool(named)
        self.streams = None if any(_PATTERN.intersection(name) for name in named) else frozenset(named)

    def rules_for(self, stream: str) -> StreamRules | None:
        """Return the rules for a stream's records, with its last SCHEMA applied; None without rules."""
        entry = self._stream(stream)
        return None if entry is None else entry.rules

    def edit(self, kind: str, line: bytes) -> Sequence[Line] | None:
        """See ``Editor``. The line's own type counts, even if ``kind`` differs."""
        try:
            try:
                usual = _usual(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # not a RECORD in the usual form
                return self._edit(line)
            stream = self._streams.get(usual.stream)
            if stream is None or not stream.is_usual:
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
        if self.is_strict:
            check_message(line)
        envelope = read_members(line)
        kind = _text(envelope, "type").upper()
        if kind not in ("RECORD", "SCHEMA"):
            return None
        stream = self._stream(_text(envelope, "stream"))
        if stream is None:
            return None
        return stream.edit_record(envelope, line) if kind == "RECORD" else stream.edit_schema(envelope)

    def _stream(self, name: str) -> _Stream | None:
        stream = self._streams.get(name)
        if stream is None:
            rules = [rule for rule in self._rules if _is_for(rule.config.stream, name)]
            schema_rules = [rule for rule in self._schema_rules if _is_for(rule.stream, name)]
            if not rules and not schema_rules:
                return None
            stream = self._streams[name] = _Stream(
                StreamRules(name, rules) if rules else None,
                Enrichment(name, schema_rules, self._say) if schema_rules else None,
                self._say,
            )
        return stream


def _is_for(pattern: str, name: str) -> bool:
    return pattern == name or fnmatchcase(name, pattern)


class _Stream:
    """The editor of one stream's messages."""

    def __init__(self, rules: StreamRules | None, enrichment: Enrichment | None, say: Callable[[str], None]) -> None:
        self.rules = rules
        self._enrichment = enrichment
        self._watches = enrichment is not None and enrichment.watches
        self._rewrites = rules is not None and rules.rewrites
        self.is_usual = rules is not None and not self._watches
        self._apply = (lambda record: record) if rules is None else rules.apply
        self._say = say
        self._has_reported: set[str] = set()

    def edit_usual(self, message: _Usual, line: bytes) -> Sequence[Line] | None:
        """See ``Editor.edit``, for a stream whose schema does not depend on its records."""
        record = self._apply(message.record)
        if record is None:
            return ()
        if not self._rewrites and not _loses_members(message, line):
            return None
        return (("RECORD", message.line(record)),)

    def edit_record(self, envelope: Members, line: bytes) -> Sequence[Line] | None:
        """See ``Editor.edit``."""
        if self.rules is None and not self._watches:
            return None
        raw = envelope.get("record")
        if raw is None:
            raise UnreadableError("it has no record")
        record = self._apply(read_members(raw))
        if record is None:
            return ()
        is_new = self._rewrites or has_key_twice(raw)
        if is_new:
            line = write({**envelope, "record": record}) + b"\n"
        if self._watches and self._enrichment is not None:
            ahead = self._enrichment.look(record)
            if ahead is not None:
                return ("SCHEMA", ahead), ("RECORD", line if line.endswith(b"\n") else line + b"\n")
        return (("RECORD", line),) if is_new else None

    def edit_schema(self, envelope: Members) -> Sequence[Line] | None:
        """See ``Editor.edit``."""
        given = _read(envelope, "schema")
        if not isinstance(given, dict):
            raise UnreadableError("its schema is not an object")
        keys, bookmarks = _names(envelope, "key_properties"), _names(envelope, "bookmark_properties")
        schema: Any = given
        after = dict(envelope)
        if self.rules is not None:
            described = self.rules.apply_schema(given, keys, bookmarks)
            schema = described.root
            for name, old, new in (
                ("key_properties", keys, described.keys),
                ("bookmark_properties", bookmarks, described.bookmarks),
            ):
                if new != old:
                    after[name] = Raw(write(new))
            for problem in described.unknown:
                self._warn(problem)
        if self._enrichment is not None:
            schema = self._enrichment.apply_schema(schema)
            self._enrichment.keep_envelope(after)
        if schema != given:
            after["schema"] = Raw(write(schema))
        elif after == envelope:
            return None
        return (("SCHEMA", write(after) + b"\n"),)

    def _warn(self, problem: str) -> None:
        if problem not in self._has_reported:
            self._has_reported.add(problem)
            self._say(problem)


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
