"""Bounds the work of validating against a JSON Schema: depth, number of checks, and recursion."""

from __future__ import annotations

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple

from balog.registry.json_compiler import byte_ns, check_patterns, own_patterns
from balog.registry.schema import InvalidSchemaError
from balog.registry.subschemas import resolve

MAX_DEPTH = 100
MAX_UNFOLDED = 100_000

_SAME_VALUE = ("not", "if", "then", "else")
_SAME_VALUE_EACH = ("allOf", "anyOf", "oneOf", "dependentSchemas", "dependencies")
_ELSEWHERE = ("$dynamicRef", "$recursiveRef")


class Complexity(NamedTuple):
    """The cost of validating against a schema.

    Attributes:
        size: number of paths from the root to a subschema, references resolved; a recursive reference counts once.
        branches: the ways that lead from a recursive subschema back to itself, for the same member of a value. From 2
            on, the work multiplies with each level of a payload. 0 without recursion.
        place_ns: worst cost of a value over all paths, in nanoseconds.
        byte_ns: worst cost of a byte of text over all patterns and formats, in nanoseconds.
    """

    size: int
    branches: int
    place_ns: float
    byte_ns: float


def measure_complexity(document: dict[str, Any], where: str = "") -> Complexity:
    """Measure a schema, and reject one that makes the validation of small payloads take too long.

    Alternatives that refer to alternatives double the work with each step; 30 such steps are 10⁹ checks.

    Raises:
        InvalidSchemaError: the schema is nested deeper than 100 levels, unfolds to more than 100,000 subschemas, or
            a ``$ref`` leads back to its own place. The specification leaves the meaning of such a schema open, and
            validators recurse without end.
    """
    if _depth(document) > MAX_DEPTH:
        raise InvalidSchemaError(f"nested deeper than {MAX_DEPTH}", where)
    if _refers_to_itself(document):
        raise InvalidSchemaError(
            "a $ref leads back to where it is before it goes into a member or an item of the value", where
        )
    check_patterns(document, where)
    try:
        complexity = _Walk(document).count(document)
    except RecursionError:
        raise InvalidSchemaError("its references lead through too many others", where) from None
    if complexity.size > MAX_UNFOLDED:
        raise InvalidSchemaError(
            f"unfolds to more than {MAX_UNFOLDED} checks; let fewer alternatives refer to alternatives", where
        )
    return complexity


def _refers_to_itself(document: Any) -> bool:
    """Return whether checking a value against a subschema leads to checking the same value against it again."""
    schemas = (node for node in _nodes(document) if isinstance(node, dict))
    graph = {id(schema): [id(inner) for inner in _same_value_schemas(document, schema)] for schema in schemas}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError:
        return True
    return False


def _nodes(document: Any) -> Iterator[Any]:
    """Yield a document and all values inside it."""
    nodes = [document]
    while nodes:
        yield (node := nodes.pop())
        nodes += _children(node)


def _same_value_schemas(document: Any, schema: dict[str, Any]) -> Iterator[Any]:
    """Yield the subschemas that apply to the same value as this schema."""
    target = resolve(document, schema.get("$ref"))
    if target is not None:
        yield target
    for name in _SAME_VALUE:
        if name in schema:
            yield schema[name]
    for name in _SAME_VALUE_EACH:
        yield from _children(schema.get(name))


def _depth(document: Any) -> int:
    depth, level = 0, [document]
    while level and depth <= MAX_DEPTH:
        depth += 1
        level = [child for node in level for child in _children(node)]
    return depth


def _children(node: Any) -> Iterator[Any]:
    if isinstance(node, dict):
        yield from node.values()
    elif isinstance(node, list):
        yield from node


_NOTHING = Complexity(0, 0, 0, 0)


class _Walk:
    def __init__(self, document: Any) -> None:
        self._document = document
        self._known: dict[int, Complexity] = {}
        self._open: set[int] = set()

    def count(self, node: Any) -> Complexity:
        """Count the paths to the objects below a node, and add up their cost."""
        if not isinstance(node, (dict, list)):
            return _NOTHING
        if id(node) in self._open:
            return _NOTHING._replace(branches=1)
        if id(node) in self._known:
            return self._known[id(node)]
        self._open.add(id(node))
        if isinstance(node, list):
            parts = [self.count(child) for child in node]
        else:
            parts = [_own_cost(node), self._follow(node)]
            # Definitions count at each reference to them.
            parts += [
                self._members(child) if name == "properties" and isinstance(child, dict) else self.count(child)
                for name, child in node.items() if name not in ("$defs", "definitions")
            ]  # fmt: skip
        self._open.remove(id(node))
        self._known[id(node)] = cost = Complexity._make(map(sum, zip(_NOTHING, *parts)))
        return cost

    def _members(self, properties: dict[str, Any]) -> Complexity:
        """Count the paths into all properties. A value belongs to one of them, so the costs do not add up."""
        parts = [_NOTHING, *(self.count(child) for child in properties.values())]
        worst = Complexity._make(map(max, zip(*parts)))
        return worst._replace(size=sum(part.size for part in parts) + 1)

    def _follow(self, node: dict[str, Any]) -> Complexity:
        reference = node.get("$ref")
        target = resolve(self._document, reference)
        cost = self.count(target)
        if any(name in node for name in _ELSEWHERE) or (isinstance(reference, str) and target is None):
            return cost._replace(branches=cost.branches + 1)  # by an anchor or at run time: it may lead anywhere
        return cost


_NODE_NS = 150.0
_MEMBER_NS = 50.0  # of a list that a value is compared with: enum, required …
_DIVISION_NS = 20_000.0  # multipleOf is exact
_TEXT_NS = 100.0  # a byte, of a format


def _own_cost(node: dict[str, Any]) -> Complexity:
    """Return an upper estimate of a subschema's own cost, on slow machines, with the time to describe errors."""
    value_ns, text = _NODE_NS, 0.0
    for name in ("enum", "required", "const", "dependentRequired"):
        value_ns += _MEMBER_NS * (sum(1 for _ in _nodes(node.get(name))) - 1)
    if "multipleOf" in node or "divisibleBy" in node:
        value_ns += _DIVISION_NS
    if "format" in node:
        text += _TEXT_NS
    for pattern in own_patterns(node):
        value_ns += _NODE_NS
        text += byte_ns(pattern)
    return Complexity(1, 0, value_ns, text)
