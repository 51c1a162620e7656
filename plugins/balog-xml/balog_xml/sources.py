"""Sources of streams' schemas: XML Schemas, and the WSDL of SOAP services."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from balog.tap.config.relative_files import read_file, relative_to_caller
from balog.tap.errors import SchemaError
from balog.tap.schema.documents import is_remote
from balog.tap.schema.sources import SchemaSource
from balog_xml.converter import XsdConverter
from balog_xml.definitions import XSD, Declaration, Definitions
from balog_xml.parser import XmlNode, local

_WSDL = "http://schemas.xmlsoap.org/wsdl/"


def xsd(
    location: str | os.PathLike[str],
    *,
    element: str = "",
    type: str = "",
    depth: int = 1,
    levels: int = 20,
    allow_remote: bool | None = None,
) -> SchemaSource:
    """Return a source that converts an XML Schema.

    Args:
        location: a file, relative to the file of the caller; or a URL, which is fetched at the first use.
        element: the name of a global element, with the path to an inner one: ``orders/order``. Without ``element`` and
            ``type``, the element with the stream's name, or the only global element.
        type: the name of a global type, instead of an element.
        depth: how often a recursive type is expanded; then it becomes an object that allows anything.
        levels: maximum nesting of elements; deeper ones become objects that allow anything.
        allow_remote: whether to fetch imported schemas; None means if ``location`` is a URL. Otherwise, a file with the
            same name next to the schema is used.
    """

    def convert(definitions: Definitions, path: str, stream: str) -> dict[str, Any]:
        definitions.add(*definitions.open(path))
        converter = XsdConverter(definitions, depth, levels)
        if type:
            return _object(_type(converter, definitions, type), type)
        return _object(_element(converter, definitions, element or stream, bool(element)), element or stream)

    return _source(location, allow_remote, convert)


def wsdl(
    location: str | os.PathLike[str],
    *,
    operation: str = "",
    type: str = "",
    element: str = "",
    depth: int = 1,
    levels: int = 20,
    allow_remote: bool | None = None,
) -> SchemaSource:
    """Return a source that converts the WSDL (1.1) of a SOAP service.

    Args:
        location: a file, relative to the file of the caller; or a URL.
        operation: the operation whose response is converted, with the path to an inner element:
            ``ListOrders/orders/order``.
        type: a type of the WSDL, such as ``Order``, instead of an operation.
        element: a global element, as in ``xsd``, instead of an operation.
        depth: as in ``xsd``.
        levels: as in ``xsd``.
        allow_remote: as in ``xsd``.
    """
    if sum(map(bool, (operation, type, element))) != 1:
        raise SchemaError("expected one of operation, type and element", os.fspath(location))

    def convert(definitions: Definitions, path: str, stream: str) -> dict[str, Any]:
        nodes = described(definitions, path)
        converter = XsdConverter(definitions, depth, levels)
        if type:
            return _object(_type(converter, definitions, type), type)
        if element:
            return _object(_element(converter, definitions, element, True), element)
        name, *way = operation.split("/")
        return _object(_inside(answer_of(converter, definitions, nodes, name), way, name), operation)

    return _source(location, allow_remote, convert)


def _source(
    location: str | os.PathLike[str],
    allow_remote: bool | None,
    convert: Callable[[Definitions, str, str], dict[str, Any]],
) -> SchemaSource:
    """Return a source that reads the definitions at a location, and converts those of a stream."""
    given = os.fspath(location)
    path = given if is_remote(given) else relative_to_caller(given)
    is_allowed = is_remote(path) if allow_remote is None else allow_remote

    def source(client: Any, stream: str) -> dict[str, Any]:
        try:
            return convert(Definitions(read_file, is_allowed), path, stream)
        except SchemaError as error:
            raise error if error.source else SchemaError(error.reason, path) from None

    return source


def _type(converter: XsdConverter, definitions: Definitions, name: str) -> dict[str, Any]:
    return converter.named(_name(definitions, ("complexType", "simpleType"), name))


def described(definitions: Definitions, path: str) -> list[XmlNode]:
    """Add the schemas of a WSDL and of its imports. Return their other definitions."""
    locations, nodes = [path], []
    for location in locations:
        root, url = definitions.open(location)
        if root.tag == f"{{{XSD}}}schema" and location != path:
            definitions.add(root, url)
            continue
        if root.tag != f"{{{_WSDL}}}definitions":
            raise SchemaError(f"expected a WSDL 1.1; found {local(root.tag)}", location)
        nodes += list(root)
        for node in root:
            if local(node.tag) == "import" and node.get("location"):
                other = definitions.seen_from(url, node)
                locations += [other] if other and other not in locations else []
        for schema in root.iter("schema"):
            if schema.tag == f"{{{XSD}}}schema":
                definitions.add(schema, url)
    return nodes


def answer_of(
    converter: XsdConverter, definitions: Definitions, nodes: list[XmlNode], operation: str
) -> dict[str, Any]:
    """Return the schema of an operation's response."""
    operations = {
        node.get("name"): node for port in nodes if local(port.tag) == "portType" for node in port.iter("operation")
    }
    if operation not in operations:
        raise SchemaError(f"there is no operation {operation!r}; there are {', '.join(operations) or 'none'}")
    answer = next((node for node in operations[operation] if local(node.tag) == "output"), None)
    if answer is None:
        raise SchemaError(f"the operation {operation!r} has no response")
    name = answer.get("message").rpartition(":")[2]
    message = next((node for node in nodes if local(node.tag) == "message" and node.get("name") == name), None)
    if message is None:
        raise SchemaError(f"there is no message {name!r}, line {answer.line}")
    parts: dict[str, dict[str, Any]] = {}
    for part in message:
        here = Declaration(part, "")
        if part.get("element"):
            parts[part.get("name")] = converter.element(
                definitions.find("element", here.name(part.get("element")), part.line)
            )
        elif part.get("type"):
            parts[part.get("name")] = converter.named(here.name(part.get("type")), part.line)
    return next(iter(parts.values())) if len(parts) == 1 else {"type": "object", "properties": parts}


def _element(converter: XsdConverter, definitions: Definitions, wanted: str, is_given: bool) -> dict[str, Any]:
    name, *way = wanted.split("/")
    known = definitions.tables["element"]
    if not is_given and not any(local(each) == name for each in known):
        if any(local(each) == name for each in definitions.tables["complexType"]):
            return converter.named(_name(definitions, ("complexType",), name))
        if len(known) == 1:
            return converter.element(next(iter(known.values())))
    declaration = definitions.find("element", _name(definitions, ("element",), name))
    return _inside(converter.element(declaration), way, name)


def _name(definitions: Definitions, kinds: tuple[str, ...], wanted: str) -> str:
    """Return the qualified name for a local name or a ``{namespace}name``."""
    known = [name for kind in kinds for name in definitions.tables[kind]]
    matches = [name for name in known if wanted in (name, local(name))]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise SchemaError(f"{wanted!r} is ambiguous; use one of {', '.join(matches)}")
    there = ", ".join(sorted(map(local, known)))[:300]
    raise SchemaError(f"there is no {' or '.join(kinds)} {wanted!r}; there are {there or 'none'}")


def _inside(schema: dict[str, Any], way: list[str], name: str) -> dict[str, Any]:
    """Return the schema of an inner element."""
    for step in way:
        schema = schema.get("items", schema)
        properties: Mapping[str, Any] = schema.get("properties", {})
        if step not in properties:
            raise SchemaError(f"{name} has no element {step!r}; it has {', '.join(properties) or 'none'}")
        schema, name = properties[step], f"{name}/{step}"
    return dict(schema.get("items", schema))


def _object(schema: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a schema for records: of an object that is never null."""
    kind = schema.get("type")
    if kind != "object" and not (isinstance(kind, list) and "object" in kind):
        raise SchemaError(f"{name} has no inner elements; it is {kind or 'of any type'}")
    return {**schema, "type": "object"}
