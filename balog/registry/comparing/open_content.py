"""What is taken for granted of writers in the optional-friendly comparison.

Most models of events are open: they let members pass that they do not name. By the letter nothing can be added to them
then, since somebody may have written anything under the new name before. Nobody has, as a rule; so a writer is taken to
promise that it writes no member which its own schema does not name and the reader's schema does. An object without any
named member is a map, whose names are data: there nothing is promised, nor where ``additionalProperties`` has a schema.
"""

from __future__ import annotations

from typing import Any

from balog.registry.comparing.document import DEEPEST, Node, SchemaDocument, is_anything, matches

__all__ = ["promised"]


def promised(writer: SchemaDocument, reader: SchemaDocument) -> SchemaDocument:
    """Give the writer's schema without the payloads that break the promise; the writer itself where it has none."""
    definitions: dict[str, Any] = {}
    name = _Promises(writer, reader, definitions).at([writer.root], [reader.root], 0)
    return writer if name is None else writer.also({"$ref": f"#/$defs/{name}"}, definitions)


class _Promises:
    def __init__(self, writer: SchemaDocument, reader: SchemaDocument, definitions: dict[str, Any]) -> None:
        self._writer, self._reader, self._definitions = writer, reader, definitions
        self._known: dict[tuple[tuple[int, ...], tuple[int, ...]], str] = {}

    def at(self, writes: list[Node], reads: list[Node], depth: int) -> str | None:
        """Write the promise for one place of a payload down; give its name, None where nothing is promised."""
        if depth > DEEPEST or not writes or not reads:
            return None
        key = (tuple(map(id, writes)), tuple(map(id, reads)))
        if key in self._known:
            return self._known[key]
        name = self._known[key] = f"promise-{len(self._known)}"
        promise: dict[str, Any] = {}
        self._definitions[name] = promise
        writer, reader = self._writer, self._reader
        members: dict[str, Any] = {
            one: {"$ref": f"#/$defs/{inner}"}
            for one in writer.declared(writes)
            if (inner := self.at(writer.member(writes, one), reader.member(reads, one), depth + 1))
        }
        members |= dict.fromkeys(self._forgiven(writes, reads), False)
        if members:
            promise["properties"] = members
        if inner := self.at(writer.others(writes), reader.others(reads), depth + 1):
            promise["additionalProperties"] = {"$ref": f"#/$defs/{inner}"}
        if inner := self.at(writer.items(writes), reader.items(reads), depth + 1):
            promise["items"] = {"$ref": f"#/$defs/{inner}"}
        if not promise and name == f"promise-{len(self._known) - 1}":  # nothing in it, and nobody refers to it
            del self._definitions[name], self._known[key]
            return None
        return name

    def _forgiven(self, writes: list[Node], reads: list[Node]) -> list[str]:
        named = self._writer.declared(writes)
        if not named:
            return []
        spread = self._writer.spread(writes)
        for node in spread:
            for word in ("additionalProperties", "unevaluatedProperties"):
                if node.get(word, True) is not False and not is_anything(node.get(word, True)):
                    return []
        taken = {name for node in spread for name in _mentioned(node)}
        patterns = [pattern for node in spread for pattern in node.get("patternProperties", {})]
        return [
            name
            for name in self._reader.declared(reads)
            if name not in named and name not in taken and not any(matches(pattern, name) for pattern in patterns)
        ]


def _mentioned(node: dict[str, Any]) -> list[str]:
    """Give the names that a schema speaks of without describing them."""
    names: list[str] = list(node.get("required") or [])
    for word in ("dependentRequired", "dependencies", "dependentSchemas"):
        for name, others in (node.get(word) or {}).items():
            names += [name, *(others if isinstance(others, list) else [])]
    return names
