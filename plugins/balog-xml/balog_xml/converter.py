"""Conversion of XML Schema's elements and complex types to JSON Schema, for records of ``from_xml``.

Repeated elements become arrays. Optional and ``nillable`` elements allow null. Nothing is required, so that properties
can be deselected. ``xs:anyType``, objects with ``xs:any`` and truncated objects allow anything
(``additionalProperties``).
https://www.w3.org/TR/xmlschema-1/
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from balog.tap.errors import SchemaError
from balog.tap.schema.documents import MAX_NODES
from balog.tap.schema.references import nullable
from balog_xml.definitions import (
    MAX_CHAIN,
    SOAP,
    XSD,
    ChildElement,
    ChildElements,
    Declaration,
    Definitions,
    Particles,
    after,
)
from balog_xml.parser import XmlNode, local
from balog_xml.simple import BUILT_IN, joined, plain, restricted
from balog_xml.values import ATTRIBUTE, LIST, TEXT, scalar

_MAX_WORDS = 500


class _Content(NamedTuple):
    """The content of a complex type: elements, attributes, text, and whether ``xs:any…`` allows others."""

    members: ChildElements
    attributes: dict[str, dict[str, Any]]
    text: dict[str, Any] | None
    is_open: bool = False


class XsdConverter:
    """Converts the declarations of ``definitions`` to JSON Schemas.

    Args:
        definitions: the declarations.
        depth: how often a recursive type is expanded; then it becomes an object that allows anything.
        levels: maximum nesting of elements; deeper ones become objects that allow anything.
    """

    def __init__(self, definitions: Definitions, depth: int = 1, levels: int = 20) -> None:
        self._definitions = definitions
        self._depth = depth
        self._levels = levels
        self._open: Counter[int] = Counter()
        self._inside = 0
        self._nodes = 0
        self._particles = Particles(definitions)

    def element(self, declared: Declaration, chain: int = 0) -> dict[str, Any]:
        """Return the schema of an element's value.

        Raises:
            SchemaError: a part is not declared, or there are more than 10,000 schemas.
        """
        self._count()
        node = declared.node
        if chain > MAX_CHAIN:
            raise SchemaError(f"an element contains itself, line {node.line}")
        if node.get("ref"):
            return self.element(self._definitions.find("element", declared.name(node.get("ref")), node.line), chain + 1)
        inner = [child for child in node if local(child.tag) in ("complexType", "simpleType")]
        if node.get("type"):
            schema = self.named(declared.name(node.get("type")), node.line)
        elif inner:
            schema = self._type(declared.inside(inner[0]))
        elif node.get("substitutionGroup"):
            head = declared.name(node.get("substitutionGroup"))
            schema = self.element(self._definitions.find("element", head, node.line), chain + 1)
        else:
            schema = {}
        schema = nullable(schema) if node.get("nillable") in ("true", "1") else schema
        return _described(schema, node)

    def _count(self) -> None:
        """Count the created schemas, up to the limit."""
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise SchemaError(f"more than {MAX_NODES} schemas; name an element or a type further in, or fewer levels")

    def named(self, name: str, line: int = 0) -> dict[str, Any]:
        """Return the schema of a type by its qualified name."""
        space, _, bare = name[1:].partition("}") if name.startswith("{") else ("", "", name)
        if bare in BUILT_IN and space in (XSD, SOAP):
            return dict(BUILT_IN[bare])
        tables = self._definitions.tables
        if space == SOAP and name not in tables["complexType"] and name not in tables["simpleType"]:
            return {}
        kind = "simpleType" if name in tables["simpleType"] else "complexType"
        return self._type(self._definitions.find(kind, name, line))

    def _type(self, declared: Declaration) -> dict[str, Any]:
        if local(declared.node.tag) == "simpleType":
            return _described(self._simple(declared), declared.node)
        key = id(declared.node)
        if self._open[key] > self._depth or self._inside >= self._levels:
            return {"type": "object"}
        self._open[key] += 1
        self._inside += 1
        schema = self._complex(declared)
        self._inside -= 1
        self._open[key] -= 1
        return _described(schema, declared.node)

    def _simple(self, declared: Declaration, chain: int = 0) -> dict[str, Any]:
        self._particles.step()
        if chain > MAX_CHAIN:
            raise SchemaError(f"a simple type contains itself, line {declared.node.line}")
        for node in declared.node:
            kind = local(node.tag)
            if kind == "restriction":
                return restricted(self._parts(declared.inside(node), "base", chain)[0], node)
            if kind == "list":
                item = self._parts(declared.inside(node), "itemType", chain)[0]
                return {"type": "array", "items": item, LIST: True}
            if kind == "union":
                return joined(self._parts(declared.inside(node), "memberTypes", chain))
        return {"type": "string"}

    def _parts(self, declared: Declaration, attribute: str, chain: int) -> list[dict[str, Any]]:
        """Return the member types of a simple type: named ones and inner ones."""
        members = []
        for prefixed in declared.node.get(attribute).split():
            name = declared.name(prefixed)
            known = self._definitions.tables["simpleType"].get(name)
            members.append(self._simple(known, chain + 1) if known else self.named(name, declared.node.line))
        for node in declared.node:
            if local(node.tag) == "simpleType":
                members.append(self._simple(declared.inside(node), chain + 1))
        return members or [{"type": "string"}]

    def _complex(self, declared: Declaration) -> dict[str, Any]:
        content = self._content(declared)
        if content.text is not None and not content.members and not content.attributes and not content.is_open:
            return content.text
        properties: dict[str, Any] = {}
        for name, schema in content.attributes.items():
            properties[ATTRIBUTE + name if name in content.members else name] = schema
        for name, member in content.members.items():
            properties[name] = self._member(member)
        if content.text is not None:
            properties[TEXT] = nullable(content.text)
        structure: dict[str, Any] = {"type": "object", "properties": properties} if properties else {"type": "object"}
        return {**structure, "additionalProperties": True} if content.is_open and properties else structure

    def _member(self, member: ChildElement) -> dict[str, Any]:
        schemas: list[dict[str, Any]] = []
        for declared in member.declared:
            schema = self.element(declared)
            if schema not in schemas:
                schemas.append(schema)
        schema = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
        if member.most > 1:
            schema = {"type": "array", "items": schema}
        return nullable(schema) if member.least == 0 else schema

    def _content(self, declared: Declaration, chain: int = 0) -> _Content:
        if chain > MAX_CHAIN:
            raise SchemaError(f"a complex type extends itself, line {declared.node.line}")
        node = declared.node
        derived = next((child for child in node if local(child.tag) in ("simpleContent", "complexContent")), None)
        if derived is None:
            content = self._own(declared)
            is_mixed = node.get("mixed") in ("true", "1")
            return content._replace(text={"type": "string"}) if is_mixed else content
        for step in derived:
            kind = local(step.tag)
            if kind not in ("extension", "restriction"):
                continue
            inner = declared.inside(step)
            base = self._base(inner, chain)
            own = self._own(inner)
            attributes = {**base.attributes, **own.attributes}
            if local(derived.tag) == "simpleContent":
                text = base.text or {"type": "string"}
                text = restricted(text, step) if kind == "restriction" else text
                return _Content({}, attributes, text, base.is_open or own.is_open)
            members = after(base.members, own.members) if kind == "extension" else own.members
            is_mixed = "true" in (derived.get("mixed"), node.get("mixed"))
            is_open = own.is_open or (base.is_open and kind == "extension")
            return _Content(members, attributes, {"type": "string"} if is_mixed else base.text, is_open)
        return _Content({}, {}, None)

    def _base(self, declared: Declaration, chain: int) -> _Content:
        name = declared.name(declared.node.get("base"))
        known = self._definitions.tables["complexType"].get(name)
        if known is not None:
            return self._content(known, chain + 1)
        if name in (f"{{{XSD}}}anyType", f"{{{SOAP}}}Array"):
            return _Content({}, {}, None)
        return _Content({}, {}, self.named(name, declared.node.line))

    def _own(self, declared: Declaration) -> _Content:
        """Return the child nodes of a complex type, or of its extension."""
        members: ChildElements = {}
        for node in declared.node:
            if local(node.tag) in ("sequence", "all", "choice", "group"):
                members = self._particles.members(declared.inside(node))
        return _Content(members, dict(self._attributes(declared, 0)), None, self._is_open(declared, 0))

    def _is_open(self, declared: Declaration, chain: int) -> bool:
        """Return whether undeclared elements or attributes are allowed."""
        self._particles.step()
        for node in declared.node:
            kind = local(node.tag)
            if kind in ("any", "anyAttribute"):
                return True
            inner = declared.inside(node)
            if kind in ("group", "attributeGroup") and node.get("ref") and chain < MAX_CHAIN:
                inner = self._definitions.find(kind, declared.inside(node).name(node.get("ref")), node.line)
            if kind in ("sequence", "choice", "all", "group", "attributeGroup") and self._is_open(inner, chain + 1):
                return True
        return False

    def _attributes(self, declared: Declaration, chain: int) -> Iterator[tuple[str, dict[str, Any]]]:
        self._particles.step()
        if chain > MAX_CHAIN:
            raise SchemaError(f"an attributeGroup is inside of itself, line {declared.node.line}")
        for node in declared.node:
            kind = local(node.tag)
            inner = declared.inside(node)
            if kind == "attributeGroup":
                group = self._definitions.find("attributeGroup", inner.name(node.get("ref")), node.line)
                yield from self._attributes(group, chain + 1)
            elif kind == "attribute" and node.get("use") != "prohibited":
                yield local(node.get("name")) or node.get("ref").rpartition(":")[2], self._attribute(inner)

    def _attribute(self, declared: Declaration, chain: int = 0) -> dict[str, Any]:
        self._count()
        node = declared.node
        if chain > MAX_CHAIN:
            raise SchemaError(f"an attribute contains itself, line {node.line}")
        if node.get("ref"):
            known = self._definitions.tables["attribute"].get(declared.name(node.get("ref")))
            schema = self._attribute(known, chain + 1) if known else {"type": "string"}  # xml:lang, soapenc:arrayType
        elif node.get("type"):
            schema = self.named(declared.name(node.get("type")), node.line)
        else:
            schema = self._simple(declared)  # an inner simpleType, or any text
            for inner in node:
                if local(inner.tag) == "simpleType":
                    schema = self._simple(declared.inside(inner))
        default = node.get("default") or node.get("fixed")
        if default:
            schema = {**schema, "default": plain(scalar(default, schema))}
        return _described(schema if node.get("use") == "required" else nullable(schema), node)


def _described(schema: dict[str, Any], node: XmlNode) -> dict[str, Any]:
    """Add the text of ``xs:documentation`` as description."""
    for annotation in node:
        if local(annotation.tag) != "annotation":
            continue
        for child in annotation:
            words = " ".join("".join(each.text for each in child.iter()).split())
            if local(child.tag) == "documentation" and words:
                short = words if len(words) <= _MAX_WORDS else f"{words[: _MAX_WORDS - 1]}…"
                return {**schema, "description": short}
    return schema
