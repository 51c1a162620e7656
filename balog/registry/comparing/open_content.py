"""The assumption on writers that lets optional members be added to an open content model.

Most event schemas are open: they accept members that they do not declare. Strictly, nothing can be added to an open
schema, because a writer may have used the new name before with any value. In practice writers do not. So the comparison
assumes that a writer writes no member that only the reader's schema declares. The assumption does not apply to an
object without declared members (a map, whose names are data), nor if ``additionalProperties`` is a schema.
"""

from __future__ import annotations

from typing import Any

from balog.registry.comparing.document import DEEPEST, Node, SchemaDocument, is_anything, matches


def assume_open_content(writer: SchemaDocument, reader: SchemaDocument) -> SchemaDocument:
    """Return the writer's schema restricted by the assumption; the writer itself if nothing changes."""
    definitions: dict[str, Any] = {}
    name = _Assumptions(writer, reader, definitions).at([writer.root], [reader.root], 0)
    return writer if name is None else writer.intersect({"$ref": f"#/$defs/{name}"}, definitions)


class _Assumptions:
    def __init__(self, writer: SchemaDocument, reader: SchemaDocument, definitions: dict[str, Any]) -> None:
        self._writer, self._reader, self._definitions = writer, reader, definitions
        self._known: dict[tuple[tuple[int, ...], tuple[int, ...]], str] = {}

    def at(self, writes: list[Node], reads: list[Node], depth: int) -> str | None:
        """Define the assumption for one place of a payload, and return its name; None if there is nothing to assume."""
        if depth > DEEPEST or not writes or not reads:
            return None
        key = (tuple(map(id, writes)), tuple(map(id, reads)))
        if key in self._known:
            return self._known[key]
        name = self._known[key] = f"promise-{len(self._known)}"
        assumption: dict[str, Any] = {}
        self._definitions[name] = assumption
        writer, reader = self._writer, self._reader
        members: dict[str, Any] = {
            member: {"$ref": f"#/$defs/{inner}"}
            for member in writer.declared(writes)
            if (inner := self.at(writer.member(writes, member), reader.member(reads, member), depth + 1))
        }
        members |= dict.fromkeys(self._forgiven(writes, reads), False)
        if members:
            assumption["properties"] = members
        if inner := self.at(writer.others(writes), reader.others(reads), depth + 1):
            assumption["additionalProperties"] = {"$ref": f"#/$defs/{inner}"}
        if inner := self.at(writer.items(writes), reader.items(reads), depth + 1):
            assumption["items"] = {"$ref": f"#/$defs/{inner}"}
        if not assumption and name == f"promise-{len(self._known) - 1}":  # nothing in it, and nobody refers to it
            del self._definitions[name], self._known[key]
            return None
        return name

    def _forgiven(self, writes: list[Node], reads: list[Node]) -> list[str]:
        named = self._writer.declared(writes)
        if not named:
            return []
        expand = self._writer.expand(writes)
        for node in expand:
            for word in ("additionalProperties", "unevaluatedProperties"):
                if node.get(word, True) is not False and not is_anything(node.get(word, True)):
                    return []
        taken = {name for node in expand for name in _mentioned(node)}
        patterns = [pattern for node in expand for pattern in node.get("patternProperties", {})]
        return [
            name
            for name in self._reader.declared(reads)
            if name not in named and name not in taken and not any(matches(pattern, name) for pattern in patterns)
        ]


def _mentioned(node: dict[str, Any]) -> list[str]:
    """Return the names that a schema mentions without declaring them."""
    names: list[str] = list(node.get("required") or [])
    for word in ("dependentRequired", "dependencies", "dependentSchemas"):
        for name, others in (node.get(word) or {}).items():
            names += [name, *(others if isinstance(others, list) else [])]
    return names
