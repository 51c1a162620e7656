"""A JSON Schema as the comparison reads it: places in a payload, and all that a schema says of each of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from typing import Any

from balog.errors import MissingExtraError
from balog.registry.comparing.unevaluated import evaluated
from balog.registry.complexity import measure_complexity
from balog.registry.json_compiler import compile_schema
from balog.registry.reasons import json_path
from balog.registry.schema import InvalidSchemaError
from balog.registry.subschemas import copy_schema, resolve

__all__ = [
    "DEEPEST",
    "ITEMS",
    "OTHERS",
    "Node",
    "SchemaDocument",
    "Step",
    "draft_of",
    "is_anything",
    "matches",
    "path_of",
]

DEEPEST = 40
"""Levels of a payload that a comparison looks at one by one; deeper ones are judged as a whole."""

Node = Any
"""A sub-schema: an object or a boolean."""


class Wild(Enum):
    """Steps of a path that stand for many places."""

    ITEMS = "[*]"
    OTHERS = "*"


Step = str | Wild
"""A member's name, or all that a list or a map holds."""

ITEMS = Wild.ITEMS
OTHERS = Wild.OTHERS

_REF_ALONE = {"draft-04/schema", "draft-06/schema", "draft-07/schema"}
"""Drafts in which nothing beside a ``$ref`` counts."""

_ALL = ("allOf",)
_SOME = ("anyOf", "oneOf")
_BRANCHES = ("if", "then", "else", "not")
_ROOT = "root"


class SchemaDocument:
    """One JSON Schema, its references followed, and what can be asked of it.

    Args:
        document: the decoded schema; references lead into it.

    Raises:
        InvalidSchemaError: it is none.
        MissingExtraError: jsonschema-rs is not installed.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        try:
            import jsonschema_rs
        except ImportError:
            raise MissingExtraError("comparing schemas", "schema") from None
        self._rust = jsonschema_rs
        self.draft = draft_of(document)
        self.root: dict[str, Any] = {name: value for name, value in document.items() if name not in ("$id", "id")}
        if isinstance(base := document.get("$id", document.get("id")), str):
            self.root = _relocate(self.root, lambda reference: _local(reference, base))
        if self.draft in _REF_ALONE:
            self.root = copy_schema(self.root, _alone)
        self.root = evaluated(self.root)
        measure_complexity(self.root)
        self._moved: Any = None
        self._canonical: dict[tuple[int, ...], Any] = {}
        self._tests: dict[tuple[int, ...], Callable[[Any], bool]] = {}
        self._kept: list[Node] = []  # so that no id of a node is that of another one later
        self.validator = self._compiled(self.root)

    def target(self, node: Mapping[str, Any]) -> Node:
        """Give what a node's ``$ref`` leads to; nothing that is valid where it leads nowhere."""
        found = resolve(self.root, node["$ref"])
        return False if found is None else found

    def also(self, node: Node, definitions: Mapping[str, Any]) -> SchemaDocument:
        """Give the schema of what is valid here and by another node, too, whose references lead to ``definitions``."""
        schema = {
            "allOf": [{"$ref": f"#/$defs/{_ROOT}"}, node],
            "$defs": {_ROOT: _moved(self.root), **definitions},
        }
        if "$schema" in self.root:
            schema["$schema"] = self.root["$schema"]
        return SchemaDocument(schema)

    def spread(self, nodes: Iterable[Node], sure: bool = False) -> list[dict[str, Any]]:
        """Give every object that says something of one place: the nodes, what they refer to and combine.

        Args:
            sure: only those that a value of the place must be valid by.
        """
        found: dict[int, dict[str, Any]] = {}
        left = deque(nodes)
        while left:
            node = left.popleft()
            if not isinstance(node, dict) or id(node) in found:
                continue
            found[id(node)] = node
            if "$ref" in node and (target := resolve(self.root, node["$ref"])) is not None:
                left.append(target)
            for name in _ALL if sure else (*_ALL, *_SOME):
                left += _listed(node.get(name))
            if not sure:
                left += [node[name] for name in _BRANCHES if name in node]
                left += _valued(node.get("dependentSchemas")) + _valued(node.get("dependencies"))
        return list(found.values())

    def declared(self, nodes: Iterable[Node]) -> dict[str, None]:
        """Give the names of members that have a schema of their own at a place, in order."""
        return {name: None for node in self.spread(nodes) for name in _mapping(node.get("properties"))}

    def member(self, nodes: Iterable[Node], name: str, sure: bool = False) -> list[Node]:
        """Give what is said of the member ``name`` of objects at a place."""
        found = []
        for node in self.spread(nodes, sure):
            said = [node["properties"][name]] if name in _mapping(node.get("properties")) else []
            said += [one for pattern, one in _mapping(node.get("patternProperties")).items() if matches(pattern, name)]
            if not said and "additionalProperties" in node:
                said = [node["additionalProperties"]]
            found += said
        return found

    def others(self, nodes: Iterable[Node]) -> list[Node]:
        """Give what is said of members without a schema of their own."""
        found = []
        for node in self.spread(nodes):
            found += [node["additionalProperties"]] if "additionalProperties" in node else []
            found += _mapping(node.get("patternProperties")).values()
        return found

    def items(self, nodes: Iterable[Node]) -> list[Node]:
        """Give what is said of the items of arrays at a place, wherever they are in it."""
        found: list[Node] = []
        for node in self.spread(nodes):
            for name in ("items", "prefixItems", "additionalItems", "contains"):
                found += node[name] if isinstance(node.get(name), list) else [node[name]] if name in node else []
        return found

    def alone(self, nodes: Sequence[Node]) -> dict[str, Any]:
        """Give a schema of its own for what must hold at a place; references in it still lead where they did."""
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
        """Give jsonschema-rs' canonical form of what must hold at a place; None when it has none."""
        key = tuple(map(id, nodes))
        if key not in self._canonical:
            self._kept += nodes
            try:
                self._canonical[key] = self._rust.canonicalize(
                    self.alone(nodes),
                    validate_formats=True,
                    pattern_options=self._rust.RegexOptions(),
                    offline=True,
                )
            except (ValueError, RecursionError):
                self._canonical[key] = None
        return self._canonical[key]

    def at(self, path: Sequence[Step]) -> list[Node]:
        """Give what is said of a place of a payload."""
        nodes: list[Node] = [self.root]
        for step in path:
            if step is ITEMS:
                nodes = self.items(nodes)
            else:
                nodes = self.others(nodes) if step is OTHERS else self.member(nodes, str(step))
        return nodes

    def takes(self, value: Any) -> bool:
        """Tell whether a payload is valid."""
        try:
            return bool(self.validator.is_valid(value))
        except (ValueError, RecursionError):
            return False

    def test_of(self, nodes: Sequence[Node]) -> Callable[[Any], bool]:
        """Give what tells whether a value is what must hold at a place."""
        key = tuple(map(id, nodes))
        if key not in self._tests:
            self._kept += nodes
            self._tests[key] = self._compiled(self.alone(nodes)).is_valid
        return self._tests[key]

    def _compiled(self, schema: dict[str, Any]) -> Any:
        try:
            return compile_schema(schema)
        except (ValueError, RecursionError) as error:
            raise InvalidSchemaError(f"not a JSON Schema: {str(error).splitlines()[0][:200]}") from None


def draft_of(document: Mapping[str, Any]) -> str:
    """Give the draft that a schema says it is of: ``2020-12`` when it does not."""
    said = document.get("$schema")
    return said.rstrip("#").rsplit("json-schema.org/", 1)[-1] if isinstance(said, str) else "draft/2020-12/schema"


def path_of(steps: Sequence[Step]) -> str:
    """Write a place as a JSONPath: ``$.lines[*].price``, ``$.labels.*``."""
    path = "$"
    for step in steps:
        path += json_path([step])[1:] if isinstance(step, str) else "[*]" if step is ITEMS else ".*"
    return path


def is_anything(node: Node) -> bool:
    """Tell a schema that refuses nothing, annotations aside."""
    if isinstance(node, dict):
        return not set(node) - {"title", "description", "$comment", "default", "examples", "deprecated", "$defs"}
    return node is not False


def matches(pattern: str, name: str) -> bool:
    """Tell whether a member's name is one of ``patternProperties``, by the engine that holds payloads against them."""
    return bool(_matcher(pattern)(name))


@lru_cache(maxsize=1024)
def _matcher(pattern: str) -> Callable[[Any], bool]:
    is_valid: Callable[[Any], bool] = compile_schema({"pattern": pattern}).is_valid
    return is_valid


def _alone(schema: dict[str, Any], original: dict[str, Any]) -> dict[str, Any]:
    """Remove the keywords beside a ``$ref``, except those that hold definitions."""
    kept = {"$ref", "$schema", "$defs", "definitions", "title", "description"}
    if not isinstance(original.get("$ref"), str):
        return schema
    return {name: value for name, value in schema.items() if name in kept}


def _relocate(node: Node, change: Callable[[str], str]) -> Node:
    """Copy a schema and change each of its references."""

    def relocated(schema: dict[str, Any], original: dict[str, Any]) -> dict[str, Any]:
        if isinstance(reference := original.get("$ref"), str):
            schema["$ref"] = change(reference)
        return schema

    return copy_schema(node, relocated)


def _moved(node: Node, referring: list[str] | None = None) -> Node:
    """Copy a node so that its references lead into the document where ``alone`` puts it; note them."""

    def move(reference: str) -> str:
        if referring is not None:
            referring.append(reference)
        return f"#/$defs/{_ROOT}{reference[1:]}" if reference[:1] == "#" else reference

    copy = _relocate(node, move)
    return {name: value for name, value in copy.items() if name != "$schema"} if isinstance(copy, dict) else copy


def _local(reference: str, base: str) -> str:
    """Write a reference to a document by its ``$id`` as what it is, one into the document itself."""
    name, _, pointer = reference.partition("#")
    return f"#{pointer}" if name == base.rstrip("#") else reference


def _listed(value: Any) -> list[Node]:
    return value if isinstance(value, list) else []


def _valued(value: Any) -> list[Node]:
    return [one for one in _mapping(value).values() if not isinstance(one, list)]


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
