"""Extend a tap's schemas by a merge patch, or by properties found in records."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Raw

from balog.broker.records.config import SchemaRule
from balog.broker.records.json_members import Members, write
from balog.broker.records.schemas import Node, declared

_KINDS = {b'"': "string", b"{": "object", b"[": "array", b"t": "boolean", b"f": "boolean"}
_MAX_NEW = 100  # properties that records may add to a stream
_WHOLE = frozenset(b"-0123456789")


def merge_patch(target: Any, patch: Any) -> Any:
    """Apply a JSON merge patch to a document (RFC 7396), and return the result."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


class Enrichment:
    """The additions to one stream's schema.

    A property that records show takes the schema that ``patternProperties`` or ``additionalProperties`` have for it;
    else its type is that of its values so far, and null. One that was only null is not known yet.

    Args:
        stream: the stream's name.
        rules: its rules, in the order of the config.
        say: called once when records have more new properties than may be added.

    Attributes:
        watches: whether records have to be shown.
    """

    def __init__(self, stream: str, rules: Sequence[SchemaRule], say: Callable[[str], None]) -> None:
        self._stream = stream
        self._patches = [rule.set for rule in rules if rule.set]
        self._say = say
        self.watches = any(rule.from_records for rule in rules)
        self._is_full = False
        self._new: dict[str, Any] = {}
        self._inferred: dict[str, list[str]] = {}
        self._schema: Node = {}
        self._known: set[str] = set()
        self._envelope: Members = {
            "type": Raw(b'"SCHEMA"'),
            "stream": Raw(write(stream)),
            "schema": Raw(b"{}"),
            "key_properties": Raw(b"[]"),
        }

    def apply_schema(self, schema: Node) -> Node:
        """Return a schema with the additions; properties found in earlier records stay."""
        for patch in self._patches:
            schema = merge_patch(schema, patch)
        if not self.watches:
            return schema
        self._schema = copy.deepcopy(schema)
        properties = self._schema.get("properties")
        described = properties if isinstance(properties, dict) else {}
        self._new = {name: new for name, new in self._new.items() if name not in described}
        self._inferred = {name: kinds for name, kinds in self._inferred.items() if name in self._new}
        self._add(self._new)
        self._known = {*described, *self._new}
        return self._schema

    def keep_envelope(self, envelope: Members) -> None:
        """Keep the last SCHEMA message, for extended ones that precede records."""
        self._envelope = dict(envelope)

    def look(self, record: Members) -> bytes | None:
        """Return the SCHEMA line to write before a record; None if no new one is needed."""
        changed: dict[str, Any] = {}
        for name in record.keys() - self._known:
            kind = _kind(record[name])
            if kind == "null":
                continue
            if len(self._new) >= _MAX_NEW:
                self._tell()
                continue
            self._new[name] = changed[name] = self._describe(name, kind)
            self._known.add(name)
        for name in self._inferred.keys() & record.keys():
            kinds = _widened(self._inferred[name], _kind(record[name]))
            if kinds is not self._inferred[name]:
                self._inferred[name] = kinds
                self._new[name] = changed[name] = {"type": [*kinds, "null"]}
        if not changed:
            return None
        self._add(changed)
        return write({**self._envelope, "schema": self._schema}) + b"\n"

    def _describe(self, name: str, kind: str) -> Any:
        schema_of_name = declared(copy.deepcopy(self._schema), name)
        if schema_of_name is not None:
            return schema_of_name
        self._inferred[name] = [kind]
        return {"type": [kind, "null"]}

    def _add(self, new: dict[str, Any]) -> None:
        if not new:
            return
        properties = self._schema.get("properties")
        self._schema["properties"] = {**(properties if isinstance(properties, dict) else {}), **copy.deepcopy(new)}

    def _tell(self) -> None:
        if not self._is_full:
            self._is_full = True
            self._say(f"{self._stream}: records show more than {_MAX_NEW} new properties; the schema takes no more")


def _kind(raw: Raw) -> str:
    value = bytes(raw)
    first = value[:1]
    if first == b"n":
        return "null"
    return _KINDS.get(first) or ("integer" if _WHOLE.issuperset(value) else "number")


def _widened(kinds: list[str], kind: str) -> list[str]:
    """Return the types with an additional one; the same list if it has the type already."""
    if kind == "null" or kind in kinds or (kind == "integer" and "number" in kinds):
        return kinds
    if kind == "number" and "integer" in kinds:
        return [*(other for other in kinds if other != "integer"), "number"]
    return [*kinds, kind]
