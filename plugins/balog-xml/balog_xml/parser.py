"""Safe parsing of XML: no external resources are read, and entities cannot expand the document.

A document can declare entities with short texts, as published schemas do (``&xsd;``). Entities that use others, and
external ones, are rejected. See https://owasp.org/www-community/vulnerabilities/XML_External_Entity_(XXE)_Processing
and "billion laughs".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from balog.tap.errors import SchemaError

MAX_XML_BYTES = 16 << 20
_MAX_WITH_ENTITIES = 1 << 20
MAX_ENTITY = 100
MAX_DEPTH = 200


@dataclass(slots=True, eq=False)
class XmlNode:
    """An element like those of ``xml.etree``, with its prefixes and its line.

    Attributes:
        tag: ``{namespace}name``, or the name without a namespace.
        attrib: the attributes by names of the same form.
        text: the text directly inside the element.
        prefixes: namespaces by prefix; "" is the default namespace.
        line: the line of the start tag, from 1.
    """

    tag: str
    attrib: dict[str, str]
    prefixes: Mapping[str, str]
    line: int
    text: str = ""
    children: list[XmlNode] = field(default_factory=list)

    def __iter__(self) -> Iterator[XmlNode]:
        return iter(self.children)

    def __len__(self) -> int:
        return len(self.children)

    def get(self, name: str, default: str = "") -> str:
        """Return an attribute."""
        return self.attrib.get(name, default)

    def iter(self, name: str = "") -> Iterator[XmlNode]:
        """Yield this element and its descendants, or those with a local name."""
        nodes = [self]
        while nodes:
            node = nodes.pop()
            if not name or local(node.tag) == name:
                yield node
            nodes += node.children[::-1]


def local(tag: str) -> str:
    """Return a name without its namespace."""
    return tag.rpartition("}")[2]


def parse(data: bytes, source: str = "") -> XmlNode:
    """Parse an XML document.

    Raises:
        SchemaError: the document is not XML, larger than 16 MiB (1 MiB if it declares entities), nested deeper than
            200, or has entities other than short texts.
    """
    from xml.parsers import expat

    if len(data) > MAX_XML_BYTES:
        raise SchemaError(f"larger than {MAX_XML_BYTES >> 20} MiB", source)
    parser = expat.ParserCreate(namespace_separator="}")
    builder = _Builder(parser, source, len(data))
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise SchemaError(f"not XML: {expat.ErrorString(error.code)}, line {error.lineno}", source) from None
    except (LookupError, ValueError) as error:
        raise SchemaError(f"not XML: {error}", source) from None
    return builder.root


class _Builder:
    def __init__(self, parser: Any, source: str, size: int) -> None:
        self._parser = parser
        self._source = source
        self._size = size
        self._prefixes: list[dict[str, str]] = [{"xml": "http://www.w3.org/XML/1998/namespace"}]
        self._declared: dict[str, str] = {}
        self._path: list[XmlNode] = []
        self._texts: list[list[str]] = []
        self.root: XmlNode = XmlNode("", {}, {}, 0)
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.StartNamespaceDeclHandler = self._declare
        parser.EntityDeclHandler = self._entity
        parser.ExternalEntityRefHandler = self._external

    def _declare(self, prefix: str | None, uri: str | None) -> None:
        self._declared[prefix or ""] = uri or ""

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        line = self._parser.CurrentLineNumber
        if len(self._path) >= MAX_DEPTH:
            raise SchemaError(f"nested deeper than {MAX_DEPTH}, line {line}", self._source)
        prefixes = {**self._prefixes[-1], **self._declared} if self._declared else self._prefixes[-1]
        self._declared = {}
        self._prefixes.append(prefixes)
        node = XmlNode(_clark(name), {_clark(key): value for key, value in attributes.items()}, prefixes, line)
        if self._path:
            self._path[-1].children.append(node)
        else:
            self.root = node
        self._path.append(node)
        self._texts.append([])

    def _end(self, name: str) -> None:
        self._path.pop().text = "".join(self._texts.pop())
        self._prefixes.pop()

    def _text(self, text: str) -> None:
        self._texts[-1].append(text)

    def _entity(self, name: str, is_parameter: bool, value: str | None, base: Any, system: Any, *rest: Any) -> None:
        if value is None or len(value) > MAX_ENTITY or "&" in value or "%" in value:
            line = self._parser.CurrentLineNumber
            raise SchemaError(f"declares the entity {name!r}, which is not a short text, line {line}", self._source)
        if self._size > _MAX_WITH_ENTITIES:
            raise SchemaError(f"declares entities, and is larger than {_MAX_WITH_ENTITIES >> 20} MiB", self._source)

    def _external(self, *arguments: Any) -> int:
        raise SchemaError(f"reads an external resource, line {self._parser.CurrentLineNumber}", self._source)


def _clark(name: str) -> str:
    return "{" + name if "}" in name else name
