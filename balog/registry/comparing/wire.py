"""Compatibility of protobuf's wire format: how one version decodes messages of another, and which numbers are reused.

The rules come from protobuf.dev (updating a message type) and from buf's breaking rules WIRE and WIRE_JSON, applied to
all messages that a payload contains. They are stricter where those allow truncated values (int64 as int32). A field
unknown to the reader is skipped, as in protobuf, provided that its number cannot return with another meaning.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import FieldDescriptor as Field

from balog.registry.comparing.verdict import CompatibilityFinding, Mode
from balog.registry.protobuf import compile_proto
from balog.registry.protobuf.descriptors import is_map, is_plain, reachable_messages
from balog.registry.protobuf.message import CompiledMessage
from balog.registry.protobuf.rules import annotated_rules, rule_lines
from balog.registry.protobuf.schema import INTEGERS
from balog.registry.schema import Schema

_PLAIN_INTEGERS = (Field.TYPE_INT32, Field.TYPE_INT64, Field.TYPE_UINT32, Field.TYPE_UINT64)
_VARINTS = {Field.TYPE_BOOL: (0, 1), **{kind: INTEGERS[kind] for kind in _PLAIN_INTEGERS}}
_WIRE = {
    **dict.fromkeys(("int32", "int64", "uint32", "uint64", "sint32", "sint64", "bool", "enum"), "a varint"),
    **dict.fromkeys(("fixed32", "sfixed32", "float"), "4 bytes"),
    **dict.fromkeys(("fixed64", "sfixed64", "double"), "8 bytes"),
    **dict.fromkeys(("string", "bytes", "message"), "a length and bytes"),
    "group": "what is between two marks",
}


def compare_wire(old: Schema, new: Schema, mode: Mode) -> list[CompatibilityFinding]:
    """Compare two versions of a type in protobuf.

    Args:
        mode: the transitive modes are the same as the simple ones: the caller iterates over the history.

    Returns:
        The findings of the layer ``wire``, and those of the layer ``json`` that a JSON Schema does not show: names of
        fields, and protovalidate's rules.

    Raises:
        InvalidSchemaError: one of the versions does not compile.
        MissingExtraError: the extra ``protobuf`` is not installed.
    """
    old_message = compile_proto(old.source, old.message, f"{old.type}/{old.version}")
    new_message = compile_proto(new.source, new.message, f"{new.type}/{new.version}")
    findings: list[CompatibilityFinding] = []
    if mode.startswith(("backward", "full")):
        findings += _Direction(old_message, new_message, "the new version").findings()
    if mode.startswith(("forward", "full")):
        findings += _Direction(new_message, old_message, "the old version").findings()
    findings += _history(old_message, new_message)
    return list({(finding.layer, finding.path, finding.reason): finding for finding in findings}.values())


def _pairs(left: Any, right: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the pairs of corresponding messages, each once."""
    waiting = [(left, right)]
    seen = {(left.full_name, right.full_name)}
    while waiting:
        here, there = waiting.pop(0)
        yield here, there
        others = there.fields_by_number
        for field in here.fields:
            other = others.get(field.number)
            if other is None or field.message_type is None or other.message_type is None or field.type != other.type:
                continue
            inner, outer = field.message_type, other.message_type
            if is_map(field) and is_map(other):
                inner, outer = (entry.fields_by_name["value"].message_type for entry in (inner, outer))
            elif is_map(field) or is_map(other):
                continue
            if inner is not None and outer is not None and (inner.full_name, outer.full_name) not in seen:
                seen.add((inner.full_name, outer.full_name))
                waiting.append((inner, outer))


class _Direction:
    """One direction: messages of ``writer`` for readers of ``reader``."""

    def __init__(self, writer: CompiledMessage, reader: CompiledMessage, name: str) -> None:
        self._writer, self._reader, self._name = writer, reader, name

    def findings(self) -> Iterator[CompatibilityFinding]:
        for writer, reader in _pairs(self._writer.descriptor, self._reader.descriptor):
            for field in writer.fields:
                other = reader.fields_by_number.get(field.number)
                if other is not None:
                    yield from self._field(field, other)
            yield from self._required(writer, reader)
            yield from self._oneofs(writer, reader)
            yield from self._rules(writer, reader)

    def _finding(self, about: Any, reason: str) -> CompatibilityFinding:
        return _wire(about.full_name, f"for readers of {self._name}, {reason}")

    def _field(self, field: Any, other: Any) -> Iterator[CompatibilityFinding]:
        if is_map(field) and is_map(other):
            for name in ("key", "value"):
                entry, entry_of = (each.message_type.fields_by_name[name] for each in (field, other))
                if wrong := misread(entry, entry_of):
                    yield self._finding(other, f"the map's {name} {wrong}")
        elif wrong := misread(field, other):
            yield self._finding(other, wrong)
        elif is_map(field) != is_map(other):
            kinds = ("a map", "a list") if is_map(field) else ("a list", "a map")
            yield self._finding(other, f"{kinds[0]} is read as {kinds[1]}")
        elif field.is_repeated and not other.is_repeated:
            yield self._finding(other, "a list is read as one value")

    def _required(self, writer: Any, reader: Any) -> Iterator[CompatibilityFinding]:
        for other in reader.fields:
            if other.is_required:
                field = writer.fields_by_number.get(other.number)
                if field is None or not field.is_required:
                    yield self._finding(other, "is required, and messages may be without it")

    def _oneofs(self, writer: Any, reader: Any) -> Iterator[CompatibilityFinding]:
        for oneof in reader.oneofs:
            fields = [writer.fields_by_number.get(other.number) for other in oneof.fields]
            known = [field for field in fields if field is not None]
            for number, field in enumerate(known):
                apart = next((two for two in known[:number] if two.containing_oneof is None
                              or two.containing_oneof is not field.containing_oneof), None)  # fmt: skip
                if apart is not None:
                    reason = f"{apart.name} and {field.name} are in one oneof, and messages may have both"
                    yield self._finding(oneof, reason)
                    break

    def _rules(self, writer: Any, reader: Any) -> Iterator[CompatibilityFinding]:
        before = _rules_of(writer, self._writer.pool)
        added = {other.name for other in reader.fields if other.number not in writer.fields_by_number}
        free = added - self._reader.rules.broken_when_empty(reader)
        for name, lines in _rules_of(reader, self._reader.pool).items():
            for line in lines if name not in free else ():
                if line not in before.get(name, []):
                    yield CompatibilityFinding(
                        layer="json",
                        path=f"{reader.full_name}.{name}" if name else reader.full_name,
                        reason=f"{self._name} has the rule {line[:200]}, which the other version does not have",
                        undecided=True,
                    )


def _rules_of(message: Any, pool: Any) -> dict[str, list[str]]:
    """Return the rules by the name of their field or oneof, and by "" those of the message itself."""
    return {name: list(rule_lines(rules)) for name, rules in annotated_rules(message, pool)}


def _history(old: CompiledMessage, new: CompiledMessage) -> Iterator[CompatibilityFinding]:
    """Yield the findings on numbers and names that do not depend on the direction of reading."""
    for old_message, new_message in _pairs(old.descriptor, new.descriptor):
        yield from _numbers(old_message, new_message)
        for field in old_message.fields:
            other = new_message.fields_by_number.get(field.number)
            if other is not None and other.json_name != field.json_name and is_plain(old_message):
                yield CompatibilityFinding(
                    layer="json",
                    path=other.full_name,
                    reason=f"is called {other.json_name} in JSON, and was called {field.json_name}",
                )
            if other is not None and _has_other_default(field, other):
                yield _wire(other.full_name, "the default changed: a message without the field has another value")
    before = {enum.full_name: enum for enum in _enums(old.descriptor)}
    for enum in _enums(new.descriptor):
        if enum.full_name in before:
            yield from _values(before[enum.full_name], enum)


def _numbers(old: Any, new: Any) -> Iterator[CompatibilityFinding]:
    was, now = _reserved(old), _reserved(new)
    before, after = ([(field.number, field.full_name) for field in each.fields] for each in (old, new))
    yield from _reused(before, after, was, now)
    for first, last in was:
        for begin in (first, *(end for _, end in now if first <= end < last)):  # where a hole can begin
            hole = next(number for number in itertools.count(begin) if number not in new.fields_by_number)
            if hole < last and not _within(hole, now):
                yield _wire(new.full_name, f"the number {hole} is not reserved any more")
                break
    gone = {field.name for field in old.fields} - {field.name for field in new.fields}
    names = set(_proto(new).reserved_name)
    for field in old.fields:
        if field.name in gone and field.name not in names and field.number not in new.fields_by_number:
            yield CompatibilityFinding(
                layer="json",
                path=field.full_name,
                reason=f'was deleted and its name is not reserved; say: reserved "{field.name}";',
                breaks=False,
            )


def _reused(
    old: list[tuple[int, str]], new: list[tuple[int, str]], was: list[tuple[int, int]], now: list[tuple[int, int]]
) -> Iterator[CompatibilityFinding]:
    """Yield the deleted numbers that are not reserved, and the added ones that were.

    Args:
        old, new: each number with the name of its field or value.
        was, now: the reserved ranges.
    """
    before, after = dict(old), dict(new)
    for number, name in old:
        if number not in after and not _within(number, now):
            yield _wire(name, f"was deleted and its number is not reserved; say: reserved {number};")
    for number, name in new:
        if number not in before and _within(number, was):
            yield _wire(name, f"has the number {number}, which was reserved: it may have had another meaning")


def _values(old: Any, new: Any) -> Iterator[CompatibilityFinding]:
    before, after = ([(value.number, f"{new.full_name}.{value.name}") for value in each.values] for each in (old, new))
    yield from _reused(before, after, _reserved(old), _reserved(new))


def _enums(message: Any) -> Iterator[Any]:
    for here in reachable_messages(message):
        for field in here.fields:
            inner = field.message_type.fields_by_name["value"] if is_map(field) else field
            if inner.enum_type is not None:
                yield inner.enum_type


def _proto(described: Any) -> Any:
    proto = descriptor_pb2.EnumDescriptorProto() if _is_enum(described) else descriptor_pb2.DescriptorProto()
    described.CopyToProto(proto)
    return proto


def _is_enum(described: Any) -> bool:
    return hasattr(described, "values_by_number")


def _has_other_default(old: Any, new: Any) -> bool:
    comparable = old.type == new.type and old.message_type is None and not old.is_repeated and not new.is_repeated
    return comparable and bool(old.default_value != new.default_value)


def _reserved(described: Any) -> list[tuple[int, int]]:
    """Return the reserved number ranges of a message or an enum, as first and one past the last."""
    # The end of an enum's range is inclusive.
    return [(part.start, part.end + _is_enum(described)) for part in _proto(described).reserved_range]


def _within(number: int, ranges: list[tuple[int, int]]) -> bool:
    return any(first <= number < last for first, last in ranges)


def _wire(path: str, reason: str) -> CompatibilityFinding:
    return CompatibilityFinding(layer="wire", path=path, reason=reason)


def misread(writer: Any, reader: Any) -> str:
    """Compare two scalar types. Return "" if every value is preserved. The caller descends into messages."""
    old, new = _kind(writer.type), _kind(reader.type)
    change = f"{_type_kind(writer)} is read as {_type_kind(reader)}"
    if _WIRE[old] != _WIRE[new]:
        return f"{change}, {_WIRE[old]} as {_WIRE[new]}"
    if old == "enum" and new == "enum":
        return _misread_enum(writer.enum_type, reader.enum_type)
    if old == new or (old, new) in (("sint32", "sint64"), ("string", "bytes"), ("message", "bytes")):
        return ""
    if _is_varint(writer) and _is_varint(reader):
        return f"{change}, which has not all of its values" if _loses_values(writer, reader) else ""
    return f"{change}, in which the same bytes mean something else"


def _kind(kind: int) -> str:
    return str(descriptor_pb2.FieldDescriptorProto.Type.Name(kind)).removeprefix("TYPE_").lower()


def _type_kind(field: Any) -> str:
    if field.message_type is not None:
        return str(field.message_type.full_name)
    return str(field.enum_type.full_name if field.enum_type is not None else _kind(field.type))


def _is_varint(field: Any) -> bool:
    return field.type in _VARINTS or field.type == Field.TYPE_ENUM


def _loses_values(writer: Any, reader: Any) -> bool:
    """Return whether a varint type has values that another one does not have."""
    if reader.type == Field.TYPE_ENUM:
        return _VARINTS[writer.type][1] > 1 or not {0, 1} <= {value.number for value in reader.enum_type.values}
    if writer.type == Field.TYPE_ENUM:
        values = [value.number for value in writer.enum_type.values]
    else:
        values = list(_VARINTS[writer.type])
    least, most = _VARINTS[reader.type]
    return not all(least <= value <= most for value in values)


def _misread_enum(old: Any, new: Any) -> str:
    names: dict[int, set[str]] = {}
    for value in new.values:
        names.setdefault(value.number, set()).add(value.name)
    numbers = {value.name: value.number for value in new.values}
    for value in old.values:
        if numbers.get(value.name, value.number) != value.number and value.name not in names.get(value.number, ()):
            return f"{value.name} is {value.number}, and in the other {new.full_name} it is {numbers[value.name]}"
        if value.number not in names and new.is_closed:
            return f"{value.name} is {value.number}, and {new.full_name} has no such value"
    return ""
