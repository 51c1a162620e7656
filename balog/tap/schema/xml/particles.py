"""The elements of groups (``xs:sequence``, ``xs:choice``, ``xs:all``) and their numbers of occurrences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from balog.tap.errors import SchemaError
from balog.tap.schema.xml.definitions import Declaration, Definitions
from balog.tap.schema.xml.parser import XmlNode, local

MAX_CHAIN = 100
_MANY = 1 << 30
_MAX_STEPS = 100_000


class ChildElement(NamedTuple):
    """An element of a complex type: its minimum and maximum occurrences, and its declarations."""

    least: int
    most: int
    declared: tuple[Declaration, ...]


ChildElements = dict[str, ChildElement]


class Particles:
    """Reads groups of elements from ``definitions``."""

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._steps = 0

    def step(self) -> None:
        """Count the work, because nested references to groups can double it at each level."""
        self._steps += 1
        if self._steps > _MAX_STEPS:
            raise SchemaError(f"has more than {_MAX_STEPS} parts; name an element or a type further in")

    def members(self, declared: Declaration, chain: int = 0) -> ChildElements:
        """Return the elements of a group by name, with their total occurrences."""
        self.step()
        node = declared.node
        kind = local(node.tag)
        if chain > MAX_CHAIN:
            raise SchemaError(f"a group is inside of itself, line {node.line}")
        if kind == "element":
            found = self._element(declared)
        elif kind == "group" and node.get("ref"):
            group = self._definitions.find("group", declared.name(node.get("ref")), node.line)
            found = self._sequence(group, chain)
        elif kind == "choice":
            found = self._choice(declared, chain)
        else:
            found = self._sequence(declared, chain)
        least, most = _occurs(node)
        return {
            name: member._replace(least=member.least * least, most=min(member.most * most, _MANY))
            for name, member in found.items()
            if most
        }

    def _element(self, declared: Declaration) -> ChildElements:
        """Return an element, or its substitutes."""
        if not declared.node.get("ref"):
            return {declared.node.get("name"): ChildElement(1, 1, (declared,))}
        head = declared.name(declared.node.get("ref"))
        names, found = [head], {}
        for name in names:
            names += [each for each in self._definitions.substitutes.get(name, []) if each not in names]
            element = self._definitions.find("element", name, declared.node.line)
            if element.node.get("abstract") not in ("true", "1"):
                found[local(name)] = ChildElement(0, 1, (element,))
        return {name: member._replace(least=1) for name, member in found.items()} if len(found) == 1 else found

    def _sequence(self, declared: Declaration, chain: int) -> ChildElements:
        found: ChildElements = {}
        for node in _particles(declared.node):
            found = after(found, self.members(declared.inside(node), chain + 1))
        return found

    def _choice(self, declared: Declaration, chain: int) -> ChildElements:
        branches = [self.members(declared.inside(node), chain + 1) for node in _particles(declared.node)]
        is_sure = not any(local(node.tag) == "any" for node in declared.node)
        found: ChildElements = {}
        for name in dict.fromkeys(name for branch in branches for name in branch):
            members = [branch[name] for branch in branches if name in branch]
            least = min(member.least for member in members) if is_sure and len(members) == len(branches) else 0
            most = max(member.most for member in members)
            found[name] = ChildElement(least, most, tuple(each for member in members for each in member.declared))
        return found


def after(one: ChildElements, other: ChildElements) -> ChildElements:
    """Return the elements of two groups in sequence."""
    found = dict(one)
    for name, member in other.items():
        before = found.get(name)
        found[name] = member if before is None else ChildElement(
            before.least + member.least, min(before.most + member.most, _MANY), before.declared + member.declared
        )  # fmt: skip
    return found


def _particles(node: XmlNode) -> Iterator[XmlNode]:
    return (child for child in node if local(child.tag) in ("element", "group", "choice", "sequence", "all"))


def _occurs(node: XmlNode) -> tuple[int, int]:
    least, most = node.get("minOccurs", "1").strip(), node.get("maxOccurs", "1").strip()
    if not least.isdecimal() or not (most.isdecimal() or most == "unbounded") or len(least) > 9 or len(most) > 9:
        raise SchemaError(f"minOccurs and maxOccurs are {least!r} and {most!r}, line {node.line}")
    return int(least), _MANY if most == "unbounded" else int(most)
