"""Translates protovalidate's rules of a field to JSON Schema, and lists the rules that JSON Schema cannot express.

Rules: buf/validate/validate.proto. A rule covers at least one spelling of a value: for a 64-bit number as text, only
the format of the number is checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from balog.registry.protobuf.descriptors import is_map

_IGNORE_ALWAYS, _IGNORE_IF_ZERO = 3, 1
_SILENT = ("example", "cel", "cel_expression", "ignore")
_FORMATS = {
    "email": "email", "hostname": "hostname", "ipv4": "ipv4", "ipv6": "ipv6", "uri": "uri", "uri_ref": "uri-reference",
    "uuid": "uuid",
}  # fmt: skip
_LENGTHS = {"min_len": ["minLength"], "max_len": ["maxLength"], "len": ["minLength", "maxLength"]}
_BOUNDS = {"gt": "exclusiveMinimum", "gte": "minimum", "lt": "exclusiveMaximum", "lte": "maximum"}
_SIZES = {"min_items": "minItems", "max_items": "maxItems", "min_pairs": "minProperties", "max_pairs": "maxProperties"}


def constrain(field: Any, rules: Any, one: dict[str, Any]) -> list[str]:
    """Add a field's rules to the schema of its value.

    Args:
        rules: the field's ``buf.validate.FieldRules``.
        one: the schema of the value, or of the array or object of values; modified in place.

    Returns:
        The rules that JSON Schema cannot express, one line each.
    """
    left = [f"cel: {rule}" for rule in _cel(rules)]
    if rules.ignore == _IGNORE_ALWAYS:
        return []
    kind = rules.WhichOneof("type")
    if rules.ignore == _IGNORE_IF_ZERO:  # the rules do not apply to 0 or ""
        return [*left, *(f"{line} unless zero" for line in rule_lines(kind, getattr(rules, kind)))] if kind else left
    if rules.required:
        size = "minProperties" if is_map(field) else "minItems" if field.is_repeated else "minLength"
        if size == "minLength" and (one.get("type") != "string" or "enum" in one or field.has_presence):
            left.append("required")
        else:
            one[size] = 1
    if kind is not None:
        left += list(_add_rules(field, kind, getattr(rules, kind), one))
    return left


def _add_rules(field: Any, kind: str, rules: Any, one: dict[str, Any]) -> Iterator[str]:
    """Add the rules of one kind. Yield those that JSON Schema cannot express."""
    yield from (f"{kind}.cel: {rule}" for rule in _cel(rules))
    bounds = {name for name in _BOUNDS if rules.DESCRIPTOR.fields_by_name.get(name) and _has(rules, name)}
    low, high = (next((getattr(rules, name) for name in pair if name in bounds), None) for pair in _PAIRS)
    turned = kind in _NUMBERS and low is not None and high is not None and low >= high  # outside of a range, not in it
    for rule, value in rules.ListFields():
        name = rule.name
        if name in _SILENT:
            continue
        if rule.is_extension or turned or not _add_rule(field, kind, name, value, one):
            yield _line(kind, name, value)


_PAIRS = (("gt", "gte"), ("lt", "lte"))
_NUMBERS = frozenset(
    ("float", "double", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32")
) | {"sfixed64"}


def _add_rule(field: Any, kind: str, name: str, value: Any, one: dict[str, Any]) -> bool:
    if name in _SIZES:
        one[_SIZES[name]] = max(value, one.get(_SIZES[name], 0)) if name.startswith("min") else value
        return True
    if kind in _NUMBERS:
        return _add_number_rule(name, value, next(iter(one.get("anyOf", [one]))))
    if kind == "string":
        return _add_text_rule(name, value, one)
    if kind == "bool" and name == "const":
        one["const"] = value
        return True
    if kind == "enum":
        return _add_enum_rule(field, name, value, one)
    if kind == "repeated" and name == "unique":
        one["uniqueItems"] = bool(value)
        return True
    inner = {"items": "items", "values": "additionalProperties"}.get(name)
    if inner is not None and isinstance(one.get(inner), dict) and "$ref" not in one[inner]:
        part = field.message_type.fields_by_name["value"] if name == "values" else field
        left = constrain(_Single(part), value, one[inner])
        return not left
    return False


class _Single:
    """A view of a repeated field as a single one."""

    is_repeated = False
    has_presence = True
    message_type = None

    def __init__(self, field: Any) -> None:
        self.enum_type = field.enum_type


def _add_number_rule(name: str, value: Any, one: dict[str, Any]) -> bool:
    if name in _BOUNDS:
        key = _BOUNDS[name]
        if one["type"] == "integer":
            key, value = key.replace("exclusiveM", "m"), value + {"gt": 1, "lt": -1}.get(name, 0)
        one[key] = value
        return True
    if name in ("const", "in"):
        one["enum"] = [value] if name == "const" else list(value)
        return True
    return False


def _add_text_rule(name: str, value: Any, one: dict[str, Any]) -> bool:
    if name in _LENGTHS:
        for key in _LENGTHS[name]:
            one[key] = max(value, one.get(key, 0)) if key == "minLength" else value
        return True
    if name in ("const", "in"):
        one["enum"] = [value] if name == "const" else list(value)
        return True
    if name in _FORMATS and value and "format" not in one:
        one["format"] = _FORMATS[name]
        return True
    patterns = {"pattern": "{}", "prefix": "^{}", "suffix": "{}$", "contains": "{}"}
    if name in patterns and "pattern" not in one:
        one["pattern"] = patterns[name].format(value if name == "pattern" else re.escape(value))
        return True
    return False


def _add_enum_rule(field: Any, name: str, value: Any, one: dict[str, Any]) -> bool:
    if name == "defined_only":
        return True
    if name not in ("const", "in", "not_in") or "enum" not in one:
        return False
    numbers = [value] if name == "const" else list(value)
    names = {one.name: one.number for one in field.enum_type.values}
    one["enum"] = [text for text in one["enum"] if (names[text] in numbers) == (name != "not_in")]
    return True


def _has(rules: Any, name: str) -> bool:
    return bool(rules.HasField(name))


def _cel(rules: Any) -> Iterator[str]:
    names = rules.DESCRIPTOR.fields_by_name
    if "cel" in names:
        for rule in rules.cel:
            yield f"{rule.id} {rule.expression}"
    if "cel_expression" in names:
        yield from rules.cel_expression


def rule_lines(kind: str, rules: Any) -> Iterator[str]:
    """Yield each rule of a kind as a line."""
    for rule, value in rules.ListFields():
        if rule.name != "example":
            yield _line(kind, rule.name, value)


def _line(kind: str, name: str, value: Any) -> str:
    text = ", ".join(str(one) for one in value) if hasattr(value, "__iter__") and not isinstance(value, str) else value
    return f"{kind}.{name}: {' '.join(str(text).split())}"
