"""What XML Schemas declare, by its qualified name: one document and those that it includes and imports."""

from __future__ import annotations

import os
from typing import NamedTuple
from urllib.parse import unquote, urljoin, urlsplit

from balog.tap.errors import SchemaError
from balog.tap.relative_files import Reader
from balog.tap.schema.documents import fetch, is_remote, location_of
from balog.tap.schema.xml.parser import MAX_XML_BYTES, XmlNode, local, parse

__all__ = ["SOAP", "XSD", "Declaration", "Definitions"]

XSD = "http://www.w3.org/2001/XMLSchema"
SOAP = "http://schemas.xmlsoap.org/soap/encoding/"
_KINDS = ("attribute", "attributeGroup", "complexType", "element", "group", "simpleType")
_MAX_FILES = 500


class Declaration(NamedTuple):
    """A declaration.

    Attributes:
        node: its element.
        namespace: the target namespace of the schema that it is in.
    """

    node: XmlNode
    namespace: str

    def inside(self, node: XmlNode) -> Declaration:
        """Return what is declared inside of it."""
        return Declaration(node, self.namespace)

    def name(self, prefixed: str) -> str:
        """Return the qualified name, ``{namespace}name``, that ``prefixed`` (``tns:Order``) stands for here."""
        prefix, _, name = prefixed.strip().rpartition(":")
        if prefix and prefix not in self.node.prefixes:
            raise SchemaError(f"the prefix of {prefixed!r} stands for nothing, line {self.node.line}")
        # Where a schema without a namespace was included, its names are those of who included it.
        space = self.node.prefixes.get(prefix) or ("" if prefix else self.namespace)
        return f"{{{space}}}{name}" if space else name


class Definitions:
    """Declarations of a set of schemas.

    Args:
        read: gives a file's bytes.
        allow_remote: whether http and https are fetched; without it, a file of the same name beside the schema is
            taken.

    Attributes:
        tables: for each kind (``element``, ``complexType`` …) what there is, by qualified name.
        substitutes: elements that may stand in the place of another, by that one's name.
        unread: what was imported and not read, for errors.
    """

    def __init__(self, read: Reader, allow_remote: bool = False) -> None:
        self._read = read
        self._allow_remote = allow_remote
        self._seen: set[tuple[str, str]] = set()
        self._places: set[str] = set()
        self.tables: dict[str, dict[str, Declaration]] = {kind: {} for kind in _KINDS}
        self.substitutes: dict[str, list[str]] = {}
        self.unread: list[str] = []

    def open(self, place: str) -> tuple[XmlNode, str]:
        """Read a document; gives its root and the URL that others are seen from.

        Raises:
            SchemaError: it is not there, or is no XML.
        """
        if is_remote(place):
            return parse(fetch(place, MAX_XML_BYTES), place), place
        return parse(self._bytes(place), place), location_of(place)

    def add(self, root: XmlNode, url: str, namespace: str = "") -> None:
        """Take in an ``xs:schema`` and what it includes and imports.

        Args:
            root: the element.
            url: where it is.
            namespace: of who includes it, for one that has none.

        Raises:
            SchemaError: it is no schema, uses ``xs:redefine``, or includes what is not there.
        """
        left = [(root, url, namespace)]
        while left:
            left += self._declare(*left.pop())

    def _declare(self, root: XmlNode, url: str, namespace: str) -> list[tuple[XmlNode, str, str]]:
        """Take in one ``xs:schema``; gives those that it includes and imports, as ``add`` takes them."""
        if root.tag != f"{{{XSD}}}schema":
            raise SchemaError(f"want an XML Schema; found {local(root.tag)}", unquote(url))
        space = root.get("targetNamespace") or namespace
        others = []
        for node in root:
            kind = local(node.tag)
            if kind in ("redefine", "override"):
                raise SchemaError(f"xs:{kind} is not supported, line {node.line}", unquote(url))
            if kind in ("include", "import"):
                wanted = space if kind == "include" else ""
                place = self.seen_from(url, node)
                if place and (place, wanted) not in self._seen:
                    self._seen.add((place, wanted))
                    others.append((*self.open(place), wanted))
            elif kind in self.tables and node.get("name"):
                name = f"{{{space}}}{node.get('name')}" if space else node.get("name")
                declared = Declaration(node, space)
                self.tables[kind].setdefault(name, declared)
                if node.get("substitutionGroup"):
                    self.substitutes.setdefault(declared.name(node.get("substitutionGroup")), []).append(name)
        return others

    def seen_from(self, url: str, node: XmlNode) -> str:
        """Return the place that an import in the document at ``url`` says; "" where it is not to be read.

        Raises:
            SchemaError: it is no place that may be read from there, or more than 500 were.
        """
        location = (node.get("schemaLocation") or node.get("location")).strip()
        if not location:
            self.unread.append(f"{node.get('namespace') or 'what has no namespace'} (the import says no place)")
            return ""
        try:
            place = urljoin(url, location)
        except ValueError as error:
            raise SchemaError(f"includes {location!r}, line {node.line}: {error}", unquote(url)) from None
        self._places.add(place)
        if len(self._places) > _MAX_FILES:
            raise SchemaError(f"includes more than {_MAX_FILES} others", unquote(url))
        if is_remote(place) and not self._allow_remote:
            name = os.path.basename(urlsplit(place).path)
            beside = urljoin(url, name) if name and not is_remote(url) else ""
            if beside and self._is_there(unquote(beside)):
                return unquote(beside)
            self.unread.append(f"{place} (not fetched; keep a copy beside the schema, or say allow_remote=True)")
            return ""
        if urlsplit(place).scheme not in ("", "http", "https") or (is_remote(url) and not is_remote(place)):
            raise SchemaError(f"includes {location!r}, line {node.line}, which is no file beside it", unquote(url))
        return place if is_remote(place) else unquote(place)

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
        """Return what was declared by a qualified name.

        Raises:
            SchemaError: nothing was.
        """
        found = self.tables[kind].get(name)
        if found is None:
            where = f", line {line}" if line else ""
            missing = f"; imported, and not read: {', '.join(self.unread[:5])}" if self.unread else ""
            raise SchemaError(f"no {kind} {name} is declared{where}{missing}")
        return found
