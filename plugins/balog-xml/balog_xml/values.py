"""Conversion of XML elements to records, with types from the JSON Schema of their XML Schema.

Names are local, without namespaces. Attributes, and the text of an element with attributes, have the names of zeep:
``currency``, or ``attr__currency`` if an element has the same name, and ``_value_1`` for the text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from balog.tap.json_schema.keywords import types_of
from balog_xml.parser import local, parse

ATTRIBUTE = "attr__"
TEXT = "_value_1"
LIST = "x-xml-list"
"""A keyword of arrays that are one text with spaces in XML (``xs:list``)."""

_XSI = "{http://www.w3.org/2001/XMLSchema-instance}"
_XML = "{http://www.w3.org/XML/1998/namespace}"
_KINDS = {str: "string", bool: "boolean", int: "integer", Decimal: "number", dict: "object", list: "array"}
_INTEGER = re.compile(r"[+-]?\d{1,4000}")
_OFFSET = re.compile(r"(?:Z|[+-]\d\d:\d\d)\Z")


def from_xml(element: Any, schema: Mapping[str, Any]) -> Any:
    """Convert an element to a record with the types of its schema.

    Values that do not match their type stay strings, for the stream's policy. Undeclared elements become strings, or
    objects of strings. A time without an offset counts as UTC; the offset of a date is dropped. INF, NaN and empty
    numbers, times and booleans become None; decimals become ``Decimal``.

    Args:
        element: an element of ``xml.etree`` or lxml, or the bytes of a document, which are parsed safely.
        schema: a schema of ``xsd`` or ``wsdl``.

    Raises:
        SchemaError: the bytes are not XML, or have forbidden entities.
    """
    if isinstance(element, bytes):
        element = parse(element)
    if element.attrib.get(f"{_XSI}nil", "").strip() in ("true", "1"):
        return None
    kinds = types_of(schema)
    attributes = {
        name: value for name, value in element.attrib.items() if not name.startswith((_XSI, "{http://schemas"))
    }
    children = [child for child in element if isinstance(child.tag, str)]
    if isinstance(schema.get("anyOf"), list):
        return _first_that_fits(element, schema["anyOf"], bool(attributes or children))
    if "object" not in kinds and (kinds or not (attributes or children)):
        return scalar(element.text or "", schema)
    properties = schema.get("properties", {})
    record: dict[str, Any] = {}
    for name, value in attributes.items():
        key = local(name)
        key = ATTRIBUTE + key if ATTRIBUTE + key in properties else key
        record[key] = scalar(value, properties.get(key, {}))
    for name, inner in properties.items():
        if "default" in inner and name not in record:
            record[name] = inner["default"]
    repeated: dict[str, int] = {}
    for child in children:
        key = local(child.tag)
        inner = properties.get(key, {})
        is_list = "array" in types_of(inner) and LIST not in inner
        item = from_xml(child, inner.get("items", {}) if is_list else inner)
        repeated[key] = repeated.get(key, 0) + 1
        if is_list or repeated[key] > 2:
            record.setdefault(key, []).append(item)
        elif repeated[key] == 2:
            record[key] = [record[key], item]
        else:
            record[key] = item
    if TEXT in properties:
        record[TEXT] = scalar(_text(element), properties[TEXT])
    elif not properties and not children and (element.text or "").strip():
        record[TEXT] = element.text
    return record


def _first_that_fits(element: Any, schemas: list[dict[str, Any]], is_object: bool) -> Any:
    """Convert an element with the first schema that matches: one name can have several schemas, by namespace."""
    value: Any = None
    for schema in sorted(schemas, key=lambda schema: ("object" in types_of(schema)) != is_object):
        value = from_xml(element, schema)
        if _KINDS.get(type(value), "") in (*types_of(schema), ""):
            break
    return value


def _text(element: Any) -> str:
    """Return the text directly inside an element; ``xml.etree`` stores text after a child with the child."""
    return (element.text or "") + "".join(getattr(child, "tail", "") or "" for child in element)


def scalar(text: str, schema: Mapping[str, Any]) -> Any:
    """Convert a text to its simple type; return it unchanged if it does not match."""
    kinds = types_of(schema)
    if LIST in schema and "array" in kinds:
        return [scalar(item, schema.get("items", {})) for item in text.split()]
    bare = text.strip(" \t\r\n")
    if not bare and kinds and ("string" not in kinds or "format" in schema):
        return None
    if "boolean" in kinds and bare in ("true", "false", *(("1", "0") if "integer" not in kinds else ())):
        return bare in ("true", "1")
    if "integer" in kinds and _INTEGER.fullmatch(bare):
        return int(bare)
    if "number" in kinds:
        if bare in ("INF", "+INF", "-INF", "NaN"):
            return None
        try:
            number = Decimal(bare)
        except InvalidOperation:
            return text
        return number if number.is_finite() else text
    if "string" not in kinds:
        return text
    if schema.get("format") == "date-time":
        return bare if _OFFSET.search(bare) or "T" not in bare else f"{bare}Z"
    if schema.get("format") == "date":
        return _OFFSET.sub("", bare)
    choices = schema.get("enum")
    return bare if choices and text not in choices and bare in choices else text
