"""Decides whether a schema accepts every payload that another schema accepts: yes, no, or unknown.

jsonschema-rs decides with canonical forms. If it cannot decide because a schema is recursive or large, a structural
proof follows: an object is covered if its members are, a list if its items are. A recursive place is assumed to be
covered while it is being proved, because payloads are finite.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Literal

from balog.registry.comparing.document import Node, SchemaDocument, is_anything

Answer = Literal["yes", "no", "unknown"]

_STRUCTURE = {"$ref", "allOf", "anyOf", "properties", "patternProperties", "additionalProperties", "items"}
_SILENT = {"title", "description", "$comment", "default", "examples", "deprecated", "$defs", "definitions", "$schema"}
_UNEVALUATED = {"unevaluatedItems", "unevaluatedProperties"}
"""Keywords whose meaning depends on the keywords beside them; for a writer they are left out together."""
_WEAKER = {*_STRUCTURE, *_UNEVALUATED, "oneOf", "prefixItems"}
_SPREAD = {"$ref", "allOf", *_UNEVALUATED}
"""Keywords that ``SchemaDocument.expand`` has resolved."""

_MOST_STEPS = 500
_DEEPEST = 60
_MOST_NODES = 100
"""Limit of schemas at one place in a proof: each branch adds copies of its siblings."""


def covers(
    reader: SchemaDocument, writer: SchemaDocument, reads: Sequence[Node] = (), writes: Sequence[Node] = ()
) -> Answer:
    """Decide whether the reader accepts every value that the writer accepts.

    Args:
        reads, writes: the subschemas to compare; the roots if omitted.
    """
    reads, writes = list(reads or [reader.root]), list(writes or [writer.root])
    answer = _canonical(reader, writer, reads, writes)
    if answer == "unknown" and _Proof(reader, writer).every(reads, writes):
        return "yes"
    return answer


def _canonical(reader: SchemaDocument, writer: SchemaDocument, reads: Sequence[Node], writes: Sequence[Node]) -> Answer:
    new, old = reader.canonical(reads), writer.canonical(writes)
    if new is None or old is None:
        return "unknown"
    try:
        answer: Answer = new.covers(old).value
    except ValueError:  # of two drafts
        return "unknown"
    return answer


class _Proof:
    def __init__(self, reader: SchemaDocument, writer: SchemaDocument) -> None:
        self._reader, self._writer = reader, writer
        self._assumed: set[tuple[int, tuple[int, ...]]] = set()
        self._kept: list[Any] = []  # so that no id is used twice
        self._steps = self._depth = 0

    def every(self, reads: Sequence[Node], writes: Sequence[Node]) -> bool:
        return all(self.one(read, list(writes)) for read in reads)

    def _below(self, read: Node, writes: list[Node]) -> bool:
        """Prove a place that is deeper in the payload. A place that is being proved further up is assumed to hold."""
        key = (id(read), tuple(sorted(id(node) for node in writes)))
        if key in self._assumed:
            return True
        self._assumed.add(key)
        self._kept += [read, *writes]
        proved = self.one(read, writes)
        if not proved:
            self._assumed.discard(key)
        return proved

    def one(self, read: Node, writes: list[Node]) -> bool:
        self._steps += 1
        if self._steps > _MOST_STEPS or self._depth > _DEEPEST:
            return False
        self._depth += 1
        try:
            return self._one(read, writes)
        finally:
            self._depth -= 1

    def _one(self, read: Node, writes: list[Node]) -> bool:
        if is_anything(read) or any(node is False for node in writes):
            return True
        if not isinstance(read, dict):
            return False
        plain = not {"$dynamicRef", "$recursiveRef"} & set(read)
        if plain and _canonical(self._reader, self._writer, [read], writes or [True]) == "yes":
            return True
        mandatory = self._writer.expand(writes, mandatory=True)
        if len(mandatory) > _MOST_NODES:
            return False
        return (plain and self._by_words(read, mandatory)) or self._by_branches(read, mandatory)

    def _by_branches(self, read: Node, mandatory: list[dict[str, Any]]) -> bool:
        for node in mandatory:
            for word in ("anyOf", "oneOf"):
                branches = node.get(word)
                if isinstance(branches, list) and branches:
                    rest: list[Node] = [
                        {
                            name: value
                            for name, value in one.items()
                            if name not in _SPREAD and (one is not node or name != word)
                        }
                        for one in mandatory
                    ]
                    self._kept += rest
                    if all(self.one(read, [*rest, branch]) for branch in branches):
                        return True
        return False

    def _by_words(self, read: dict[str, Any], mandatory: list[dict[str, Any]]) -> bool:
        rest = {word: value for word, value in read.items() if word not in _STRUCTURE and word not in _SILENT}
        if {"oneOf", "prefixItems", "additionalItems", "unevaluatedProperties"} & set(rest):
            return False
        if rest and not self._rest(rest, mandatory):
            return False
        if "$ref" in read and not self.one(self._reader.target(read), list(mandatory)):
            return False
        if not all(self.one(part, list(mandatory)) for part in read.get("allOf", [])):
            return False
        if "anyOf" in read and not any(self.one(part, list(mandatory)) for part in read["anyOf"]):
            return False
        return self._members(read, mandatory) and self._items(read, mandatory)

    def _rest(self, rest: dict[str, Any], mandatory: list[dict[str, Any]]) -> bool:
        """Prove the reader's keywords on the value itself, without members and items."""
        shallow: list[Node] = [
            {word: value for word, value in node.items() if word not in _WEAKER} for node in mandatory
        ]
        self._kept += [rest, *shallow]
        return _canonical(self._reader, self._writer, [rest], shallow or [True]) == "yes"

    def _members(self, read: dict[str, Any], mandatory: list[dict[str, Any]]) -> bool:
        named: dict[str, Any] = read.get("properties", {})
        for name, value in named.items():
            if not self._below(value, self._writer.member(mandatory, name, mandatory=True)):
                return False
        patterns: dict[str, Any] = read.get("patternProperties", {})
        for pattern, value in patterns.items():
            if not self._by_pattern(pattern, value, mandatory):
                return False
        others = read.get("additionalProperties", True)
        if is_anything(others):
            return True
        for name in self._writer.declared(mandatory):
            if name not in named and not self._below(others, self._writer.member(mandatory, name, mandatory=True)):
                return False
        unnamed = [node["additionalProperties"] for node in mandatory if "additionalProperties" in node]
        special = [
            [value for pattern, value in node.get("patternProperties", {}).items() if pattern not in patterns]
            for node in mandatory
        ]
        return self._each(others, unnamed, special)

    def _by_pattern(self, pattern: str, value: Node, mandatory: list[dict[str, Any]]) -> bool:
        """Prove the schema of a name pattern with the writer's schema of the same pattern."""
        same = [
            node["patternProperties"][pattern] for node in mandatory if pattern in node.get("patternProperties", {})
        ]
        return is_anything(value) or (bool(same) and self._below(value, same))

    def _items(self, read: dict[str, Any], mandatory: list[dict[str, Any]]) -> bool:
        wanted = read.get("items", True)
        if isinstance(wanted, list):  # of the drafts before 2020-12, one for each of the first items
            return False
        if is_anything(wanted):
            return True
        listed = [node["items"] for node in mandatory if isinstance(node.get("items"), (dict, bool))]
        return self._each(wanted, listed, [node.get("prefixItems", []) for node in mandatory])

    def _each(self, read: Node, common: list[Node], special: Sequence[Collection[Node]]) -> bool:
        """Prove a schema for many values: those with a common schema of the writer, and those with their own."""
        return self._below(read, common) and all(self._below(read, [one]) for some in special for one in some)
