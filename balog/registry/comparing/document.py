"""A JSON Schema with queries for the comparison: the subschemas that apply to a place of a payload, and coverage.

jsonschema-rs decides with canonical forms whether a schema covers another one. It cannot decide for some schemas, for
example recursive ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from typing import Any, Literal

from balog.registry.complexity import measure_complexity
from balog.registry.json_compiler import compile_schema
from balog.registry.json_schema import checked_validator
from balog.registry.reasons import json_path
from balog.registry.subschemas import relocate, resolve

DEEPEST = 40
"""Levels of a payload that are compared one by one; deeper levels are compared as a whole."""

Node = Any
"""A subschema: an object or a boolean."""


Answer = Literal["yes", "no", "unknown"]


class Wildcard(Enum):
    """Steps of a path that match many places."""

    ITEMS = "[*]"
    OTHERS = "*"


Step = str | Wildcard
"""A member's name, or a wildcard for the items of a list or the values of a map."""

ITEMS = Wildcard.ITEMS
OTHERS = Wildcard.OTHERS

_ALL = ("allOf",)
_SOME = ("anyOf", "oneOf")
_BRANCHES = ("if", "then", "else", "not")
_ROOT = "root"


class SchemaDocument:
    """One JSON Schema with its references resolved.

    Args:
        document: the decoded schema; references lead into it.

    Raises:
        InvalidSchemaError: the document is not a schema.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.root: dict[str, Any] = {name: value for name, value in document.items() if name not in ("$id", "id")}
        if isinstance(base := document.get("$id", document.get("id")), str):
            self.root = relocate(self.root, lambda reference: _local(reference, base))
        measure_complexity(self.root)
        self._moved: Any = None
        self._canonical: dict[tuple[int, ...], Any] = {}
        self._kept: list[Node] = []  # keeps nodes alive, so that no id is reused
        checked_validator(self.root)

    def intersect(self, node: Node, definitions: Mapping[str, Any]) -> SchemaDocument:
        """Return the intersection with another node, whose references lead to ``definitions``."""
        schema = {"allOf": [{"$ref": f"#/$defs/{_ROOT}"}, node], "$defs": {_ROOT: _moved(self.root), **definitions}}
        if "$schema" in self.root:
            schema["$schema"] = self.root["$schema"]
        return SchemaDocument(schema)

    def expand(self, nodes: Iterable[Node], mandatory: bool = False) -> list[dict[str, Any]]:
        """Return every schema object that applies to a place: the nodes, their references and combinations.

        Args:
            mandatory: only schemas against which every value must be valid.
        """
        schemas: dict[int, dict[str, Any]] = {}
        left = deque(nodes)
        while left:
            node = left.popleft()
            if not isinstance(node, dict) or id(node) in schemas:
                continue
            schemas[id(node)] = node
            if "$ref" in node and (target := resolve(self.root, node["$ref"])) is not None:
                left.append(target)
            for name in _ALL if mandatory else (*_ALL, *_SOME):
                left += _listed(node.get(name))
            if not mandatory:
                left += [node[name] for name in _BRANCHES if name in node]
                left += _valued(node.get("dependentSchemas")) + _valued(node.get("dependencies"))
        return list(schemas.values())

    def declared(self, nodes: Iterable[Node]) -> dict[str, None]:
        """Return the names of declared members at a place, in order."""
        return {name: None for node in self.expand(nodes) for name in _mapping(node.get("properties"))}

    def member(self, nodes: Iterable[Node], name: str) -> list[Node]:
        """Return the schemas of the member ``name`` of objects at a place."""
        schemas = []
        for node in self.expand(nodes):
            declared = [node["properties"][name]] if name in _mapping(node.get("properties")) else []
            declared += [
                schema for pattern, schema in _mapping(node.get("patternProperties")).items() if matches(pattern, name)
            ]
            if not declared and "additionalProperties" in node:
                declared = [node["additionalProperties"]]
            schemas += declared
        return schemas

    def others(self, nodes: Iterable[Node]) -> list[Node]:
        """Return the schemas of undeclared members."""
        schemas = []
        for node in self.expand(nodes):
            schemas += [node["additionalProperties"]] if "additionalProperties" in node else []
            schemas += _mapping(node.get("patternProperties")).values()
        return schemas

    def items(self, nodes: Iterable[Node]) -> list[Node]:
        """Return the schemas of the items of arrays at a place, at any index."""
        schemas: list[Node] = []
        for node in self.expand(nodes):
            for name in ("items", "prefixItems", "additionalItems", "contains"):
                schemas += node[name] if isinstance(node.get(name), list) else [node[name]] if name in node else []
        return schemas

    def standalone(self, nodes: Sequence[Node]) -> dict[str, Any]:
        """Return a self-contained schema for a place; its references keep their targets."""
        if len(nodes) == 1 and nodes[0] is self.root:
            return dict(self.root)
        referring: list[str] = []
        schema: dict[str, Any] = {"allOf": [_moved(node, referring) for node in nodes]}
        if referring:
            if self._moved is None:
                self._moved = _moved(self.root)
            schema["$defs"] = {_ROOT: self._moved}
        if "$schema" in self.root:
            schema["$schema"] = self.root["$schema"]
        return schema

    def canonical(self, nodes: Sequence[Node]) -> Any:
        """Return the canonical form of jsonschema-rs for a place; None if there is none."""
        import jsonschema_rs

        key = tuple(map(id, nodes))
        if key not in self._canonical:
            self._kept += nodes
            try:
                self._canonical[key] = jsonschema_rs.canonicalize(
                    self.standalone(nodes),
                    validate_formats=True,
                    pattern_options=jsonschema_rs.RegexOptions(),
                    offline=True,
                )
            except (ValueError, RecursionError):
                self._canonical[key] = None
        return self._canonical[key]

    def at(self, path: Sequence[Step]) -> list[Node]:
        """Return the schemas of a place of a payload."""
        nodes: list[Node] = [self.root]
        for step in path:
            if step is ITEMS:
                nodes = self.items(nodes)
            else:
                nodes = self.others(nodes) if step is OTHERS else self.member(nodes, str(step))
        return nodes


def covers(
    reader: SchemaDocument, writer: SchemaDocument, reads: Sequence[Node] = (), writes: Sequence[Node] = ()
) -> Answer:
    """Decide whether the reader accepts every payload that the writer accepts.

    Args:
        reads, writes: the subschemas to compare; the roots if omitted.
    """
    new, old = reader.canonical(reads or [reader.root]), writer.canonical(writes or [writer.root])
    if new is None or old is None:
        return "unknown"
    try:
        answer: Answer = new.covers(old).value
    except ValueError:  # of two drafts
        return "unknown"
    return answer


def path_of(steps: Sequence[Step]) -> str:
    """Return a place as a JSONPath: ``$.lines[*].price``, ``$.labels.*``."""
    path = "$"
    for step in steps:
        path += json_path([step])[1:] if isinstance(step, str) else "[*]" if step is ITEMS else ".*"
    return path


def is_anything(node: Node) -> bool:
    """Return whether a schema accepts every value."""
    if isinstance(node, dict):
        return not set(node) - {"title", "description", "$comment", "default", "examples", "deprecated", "$defs"}
    return node is not False


def matches(pattern: str, name: str) -> bool:
    """Return whether a member's name matches a pattern, with the engine that validates payloads."""
    return bool(_matcher(pattern)(name))


@lru_cache(maxsize=1024)
def _matcher(pattern: str) -> Callable[[Any], bool]:
    is_valid: Callable[[Any], bool] = compile_schema({"pattern": pattern}).is_valid
    return is_valid


def _moved(node: Node, referring: list[str] | None = None) -> Node:
    """Copy a node with references into the definition where ``standalone`` puts the root. Add them to ``referring``."""

    def move(reference: str) -> str:
        if referring is not None:
            referring.append(reference)
        return f"#/$defs/{_ROOT}{reference[1:]}" if reference[:1] == "#" else reference

    copy = relocate(node, move)
    return {name: value for name, value in copy.items() if name != "$schema"} if isinstance(copy, dict) else copy


def _local(reference: str, base: str) -> str:
    """Replace a reference to the document's own ``$id`` by a local one."""
    name, _, pointer = reference.partition("#")
    return f"#{pointer}" if name == base.rstrip("#") else reference


def _listed(value: Any) -> list[Node]:
    return value if isinstance(value, list) else []


def _valued(value: Any) -> list[Node]:
    return [node for node in _mapping(value).values() if not isinstance(node, list)]


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
