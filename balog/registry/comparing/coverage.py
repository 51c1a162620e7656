"""Does a schema take every payload that another one takes? Proved, disproved or neither.

jsonschema-rs decides by canonical forms. What it leaves open for being recursive, or for its sheer size, is tried place
by place: an object is covered when its members are, a list when its items are, and a place within itself is taken to be
covered while it is looked at, since payloads end.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Literal

from balog.registry.comparing.document import Node, SchemaDocument, is_anything

__all__ = ["Answer", "covers"]

Answer = Literal["yes", "no", "unknown"]

_STRUCTURE = {"$ref", "allOf", "anyOf", "properties", "patternProperties", "additionalProperties", "items"}
_SILENT = {"title", "description", "$comment", "default", "examples", "deprecated", "$defs", "definitions", "$schema"}
_UNEVALUATED = {"unevaluatedItems", "unevaluatedProperties"}
"""What says more without the words beside it; of a writer it is left out with them."""
_WEAKER = {*_STRUCTURE, *_UNEVALUATED, "oneOf", "prefixItems"}
_SPREAD = {"$ref", "allOf", *_UNEVALUATED}
"""What ``SchemaDocument.spread`` has followed already."""

_MOST_STEPS = 500
_DEEPEST = 60
_MOST_NODES = 100
"""What a proof may take into account at one place: each branch adds copies of what is beside it."""


def covers(
    reader: SchemaDocument, writer: SchemaDocument, reads: Sequence[Node] = (), writes: Sequence[Node] = ()
) -> Answer:
    """Tell whether the reader takes every value that the writer takes, at one place or (by default) altogether."""
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
        self._above: set[tuple[int, tuple[int, ...]]] = set()
        self._kept: list[Any] = []  # so that no id is used twice
        self._steps = self._depth = 0

    def every(self, reads: Sequence[Node], writes: Sequence[Node]) -> bool:
        return all(self.one(read, list(writes)) for read in reads)

    def _below(self, read: Node, writes: list[Node]) -> bool:
        """Prove a place that is deeper in the payload; one that is being proved further up holds."""
        key = (id(read), tuple(sorted(id(node) for node in writes)))
        if key in self._above:
            return True
        self._above.add(key)
        self._kept += [read, *writes]
        proved = self.one(read, writes)
        if not proved:
            self._above.discard(key)
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
        sure = self._writer.spread(writes, sure=True)
        if len(sure) > _MOST_NODES:
            return False
        return (plain and self._by_words(read, sure)) or self._by_branches(read, sure)

    def _by_branches(self, read: Node, sure: list[dict[str, Any]]) -> bool:
        for node in sure:
            for word in ("anyOf", "oneOf"):
                branches = node.get(word)
                if isinstance(branches, list) and branches:
                    rest: list[Node] = [
                        {
                            name: said
                            for name, said in one.items()
                            if name not in _SPREAD and (one is not node or name != word)
                        }
                        for one in sure
                    ]
                    self._kept += rest
                    if all(self.one(read, [*rest, branch]) for branch in branches):
                        return True
        return False

    def _by_words(self, read: dict[str, Any], sure: list[dict[str, Any]]) -> bool:
        rest = {word: said for word, said in read.items() if word not in _STRUCTURE and word not in _SILENT}
        if {"oneOf", "prefixItems", "additionalItems", "unevaluatedProperties"} & set(rest):
            return False
        if rest and not self._rest(rest, sure):
            return False
        if "$ref" in read and not self.one(self._reader.target(read), list(sure)):
            return False
        if not all(self.one(part, list(sure)) for part in read.get("allOf", [])):
            return False
        if "anyOf" in read and not any(self.one(part, list(sure)) for part in read["anyOf"]):
            return False
        return self._members(read, sure) and self._items(read, sure)

    def _rest(self, rest: dict[str, Any], sure: list[dict[str, Any]]) -> bool:
        """Prove what is said of the value itself by what the writer says of it, members and items aside."""
        shallow: list[Node] = [{word: said for word, said in node.items() if word not in _WEAKER} for node in sure]
        self._kept += [rest, *shallow]
        return _canonical(self._reader, self._writer, [rest], shallow or [True]) == "yes"

    def _members(self, read: dict[str, Any], sure: list[dict[str, Any]]) -> bool:
        named: dict[str, Any] = read.get("properties", {})
        for name, said in named.items():
            if not self._below(said, self._writer.member(sure, name, sure=True)):
                return False
        patterns: dict[str, Any] = read.get("patternProperties", {})
        for pattern, said in patterns.items():
            if not self._by_pattern(pattern, said, sure):
                return False
        others = read.get("additionalProperties", True)
        if is_anything(others):
            return True
        for name in self._writer.declared(sure):
            if name not in named and not self._below(others, self._writer.member(sure, name, sure=True)):
                return False
        unnamed = [node["additionalProperties"] for node in sure if "additionalProperties" in node]
        special = [
            [said for pattern, said in node.get("patternProperties", {}).items() if pattern not in patterns]
            for node in sure
        ]
        return self._each(others, unnamed, special)

    def _by_pattern(self, pattern: str, said: Node, sure: list[dict[str, Any]]) -> bool:
        """Prove what is said of names of a pattern by what the writer says of the very same pattern."""
        same = [node["patternProperties"][pattern] for node in sure if pattern in node.get("patternProperties", {})]
        return is_anything(said) or (bool(same) and self._below(said, same))

    def _items(self, read: dict[str, Any], sure: list[dict[str, Any]]) -> bool:
        wanted = read.get("items", True)
        if isinstance(wanted, list):  # of the drafts before 2020-12, one for each of the first items
            return False
        if is_anything(wanted):
            return True
        listed = [node["items"] for node in sure if isinstance(node.get("items"), (dict, bool))]
        return self._each(wanted, listed, [node.get("prefixItems", []) for node in sure])

    def _each(self, read: Node, common: list[Node], special: Sequence[Collection[Node]]) -> bool:
        """Prove what must hold of many values: those that the writer describes together, and those by themselves."""
        return self._below(read, common) and all(self._below(read, [one]) for some in special for one in some)
