"""Declarations of XML Schemas by qualified name: of a document and of those that it includes and imports."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import unquote, urljoin, urlsplit

from balog.tap.config.relative_files import Reader
from balog.tap.errors import SchemaError
from balog.tap.schema.documents import fetch, is_remote, location_of
from balog_xml.parser import MAX_XML_BYTES, XmlNode, local, parse

XSD = "http://www.w3.org/2001/XMLSchema"
SOAP = "http://schemas.xmlsoap.org/soap/encoding/"
_KINDS = ("attribute", "attributeGroup", "complexType", "element", "group", "simpleType")
_MAX_FILES = 500


class Declaration(NamedTuple):
    """A declaration.

    Attributes:
        node: the element of the declaration.
        namespace: the target namespace of its schema.
    """

    node: XmlNode
    namespace: str

    def inside(self, node: XmlNode) -> Declaration:
        """Return a declaration inside this one."""
        return Declaration(node, self.namespace)

    def name(self, prefixed: str) -> str:
        """Return the qualified name, ``{namespace}name``, of a prefixed name such as ``tns:Order``."""
        prefix, _, name = prefixed.strip().rpartition(":")
        if prefix and prefix not in self.node.prefixes:
            raise SchemaError(f"the prefix of {prefixed!r} is not declared, line {self.node.line}")
        # An included schema without a namespace has the namespace of the including one.
        space = self.node.prefixes.get(prefix) or ("" if prefix else self.namespace)
        return f"{{{space}}}{name}" if space else name


class Definitions:
    """Declarations of a set of schemas.

    Args:
        read: returns the bytes of a file.
        allow_remote: whether to fetch http and https URLs. Otherwise, a file with the same name next to the schema is
            used.

    Attributes:
        tables: for each kind (``element``, ``complexType`` …), the declarations by qualified name.
        substitutes: names of substitute elements by the name of the substituted element.
        unread: imports that were not read, for errors.
    """

    def __init__(self, read: Reader, allow_remote: bool = False) -> None:
        self._read = read
        self._allow_remote = allow_remote
        self._seen: set[tuple[str, str]] = set()
        self._places: set[str] = set()
        self.tables: dict[str, dict[str, Declaration]] = {kind: {} for kind in _KINDS}
        self.substitutes: dict[str, list[str]] = {}
        self.unread: list[str] = []

    def open(self, location: str) -> tuple[XmlNode, str]:
        """Read a document. Return its root and its base URL.

        Raises:
            SchemaError: the document does not exist or is not XML.
        """
        if is_remote(location):
            return parse(fetch(location, MAX_XML_BYTES), location), location
        return parse(self._bytes(location), location), location_of(location)

    def add(self, root: XmlNode, url: str, namespace: str = "") -> None:
        """Add the declarations of an ``xs:schema`` and of those that it includes and imports.

        Args:
            root: the element.
            url: its base URL.
            namespace: the namespace of the including schema, for schemas without one.

        Raises:
            SchemaError: this is not a schema, it uses ``xs:redefine``, or an include does not exist.
        """
        left = [(root, url, namespace)]
        while left:
            left += self._declare(*left.pop())

    def _declare(self, root: XmlNode, url: str, namespace: str) -> list[tuple[XmlNode, str, str]]:
        """Add one ``xs:schema``. Return its includes and imports as arguments of ``add``."""
        if root.tag != f"{{{XSD}}}schema":
            raise SchemaError(f"expected an XML Schema; found {local(root.tag)}", unquote(url))
        space = root.get("targetNamespace") or namespace
        others = []
        for node in root:
            kind = local(node.tag)
            if kind in ("redefine", "override"):
                raise SchemaError(f"xs:{kind} is not supported, line {node.line}", unquote(url))
            if kind in ("include", "import"):
                wanted = space if kind == "include" else ""
                location = self.seen_from(url, node)
                if location and (location, wanted) not in self._seen:
                    self._seen.add((location, wanted))
                    others.append((*self.open(location), wanted))
            elif kind in self.tables and node.get("name"):
                name = f"{{{space}}}{node.get('name')}" if space else node.get("name")
                declared = Declaration(node, space)
                self.tables[kind].setdefault(name, declared)
                if node.get("substitutionGroup"):
                    self.substitutes.setdefault(declared.name(node.get("substitutionGroup")), []).append(name)
        return others

    def seen_from(self, url: str, node: XmlNode) -> str:
        """Return the location of an import in the document at ``url``; "" if it is not read.

        Raises:
            SchemaError: the location may not be read from there, or there are more than 500.
        """
        location = (node.get("schemaLocation") or node.get("location")).strip()
        if not location:
            self.unread.append(f"{node.get('namespace') or 'no namespace'} (the import has no location)")
            return ""
        try:
            import_url = urljoin(url, location)
        except ValueError as error:
            raise SchemaError(f"includes {location!r}, line {node.line}: {error}", unquote(url)) from None
        self._places.add(import_url)
        if len(self._places) > _MAX_FILES:
            raise SchemaError(f"includes more than {_MAX_FILES} others", unquote(url))
        if is_remote(import_url) and not self._allow_remote:
            name = os.path.basename(urlsplit(import_url).path)
            neighbour = urljoin(url, name) if name and not is_remote(url) else ""
            if neighbour and self._is_there(unquote(neighbour)):
                return unquote(neighbour)
            self.unread.append(f"{import_url} (not fetched; store a copy next to the schema, or set allow_remote=True)")
            return ""
        if urlsplit(import_url).scheme not in ("", "http", "https") or (is_remote(url) and not is_remote(import_url)):
            reason = "which is neither a relative path nor an http URL"
            raise SchemaError(f"includes {location!r}, line {node.line}, {reason}", unquote(url))
        return import_url if is_remote(import_url) else unquote(import_url)

    def _bytes(self, path: str) -> bytes:
        try:
            return self._read(path)
        except (OSError, ValueError) as error:
            raise SchemaError(f"cannot be read: {getattr(error, 'strerror', None) or error}", path) from None

    def _is_there(self, path: str) -> bool:
        try:
            self._read(path)
        except OSError:
            return False
        return True

    def find(self, kind: str, name: str, line: int = 0) -> Declaration:
        """Return the declaration of a qualified name.

        Raises:
            SchemaError: there is none.
        """
        declaration = self.tables[kind].get(name)
        if declaration is None:
            where = f", line {line}" if line else ""
            missing = f"; imported, and not read: {', '.join(self.unread[:5])}" if self.unread else ""
            raise SchemaError(f"no {kind} {name} is declared{where}{missing}")
        return declaration


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
            members = self._element(declared)
        elif kind == "group" and node.get("ref"):
            group = self._definitions.find("group", declared.name(node.get("ref")), node.line)
            members = self._sequence(group, chain)
        elif kind == "choice":
            members = self._choice(declared, chain)
        else:
            members = self._sequence(declared, chain)
        least, most = _occurs(node)
        return {
            name: member._replace(least=member.least * least, most=min(member.most * most, _MANY))
            for name, member in members.items()
            if most
        }

    def _element(self, declared: Declaration) -> ChildElements:
        """Return an element, or its substitutes."""
        if not declared.node.get("ref"):
            return {declared.node.get("name"): ChildElement(1, 1, (declared,))}
        head = declared.name(declared.node.get("ref"))
        names, members = [head], {}
        for name in names:
            names += [each for each in self._definitions.substitutes.get(name, []) if each not in names]
            element = self._definitions.find("element", name, declared.node.line)
            if element.node.get("abstract") not in ("true", "1"):
                members[local(name)] = ChildElement(0, 1, (element,))
        return {name: member._replace(least=1) for name, member in members.items()} if len(members) == 1 else members

    def _sequence(self, declared: Declaration, chain: int) -> ChildElements:
        elements: ChildElements = {}
        for node in _particles(declared.node):
            elements = after(elements, self.members(declared.inside(node), chain + 1))
        return elements

    def _choice(self, declared: Declaration, chain: int) -> ChildElements:
        branches = [self.members(declared.inside(node), chain + 1) for node in _particles(declared.node)]
        is_sure = not any(local(node.tag) == "any" for node in declared.node)
        elements: ChildElements = {}
        for name in dict.fromkeys(name for branch in branches for name in branch):
            members = [branch[name] for branch in branches if name in branch]
            least = min(member.least for member in members) if is_sure and len(members) == len(branches) else 0
            most = max(member.most for member in members)
            elements[name] = ChildElement(least, most, tuple(each for member in members for each in member.declared))
        return elements


def after(first: ChildElements, second: ChildElements) -> ChildElements:
    """Return the elements of two groups in sequence."""
    elements = dict(first)
    for name, member in second.items():
        before = elements.get(name)
        elements[name] = member if before is None else ChildElement(
            before.least + member.least, min(before.most + member.most, _MANY), before.declared + member.declared
        )  # fmt: skip
    return elements


def _particles(node: XmlNode) -> Iterator[XmlNode]:
    return (child for child in node if local(child.tag) in ("element", "group", "choice", "sequence", "all"))


def _occurs(node: XmlNode) -> tuple[int, int]:
    least, most = node.get("minOccurs", "1").strip(), node.get("maxOccurs", "1").strip()
    if not least.isdecimal() or not (most.isdecimal() or most == "unbounded") or len(least) > 9 or len(most) > 9:
        raise SchemaError(f"minOccurs and maxOccurs are {least!r} and {most!r}, line {node.line}")
    return int(least), _MANY if most == "unbounded" else int(most)
