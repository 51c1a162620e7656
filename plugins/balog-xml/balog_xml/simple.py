"""Conversion of XML Schema's simple types to JSON Schema: built-in types and their restrictions.

https://www.w3.org/TR/xmlschema-2/. Restrictions without an equivalent in JSON Schema are left out, so that no valid
document is rejected: ``pattern``, another regex language, which becomes a comment; bounds of times; and digits after
the decimal point, which validators with floats get wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from balog.tap.schema.references import nullable
from balog_xml.parser import XmlNode, local
from balog_xml.values import LIST, scalar

_TEXT = {"type": "string"}
_TEXTS = (
    *("string", "normalizedString", "token", "language", "Name", "NCName", "NMTOKEN", "ID", "IDREF", "ENTITY", "QName"),
    *("NOTATION", "anyURI", "anySimpleType", "anyAtomicType", "duration", "dayTimeDuration", "yearMonthDuration"),
    *("time", "gYear", "gYearMonth", "gMonth", "gMonthDay", "gDay"),
)
_MOST_ZEROS = 300
_MOST_DIGITS = 18  # targets' integers cannot have larger bounds
_BITS = {"byte": 8, "short": 16, "int": 32, "long": 64}

BUILT_IN: Mapping[str, dict[str, Any]] = {
    **dict.fromkeys(_TEXTS, _TEXT),
    **{name: {"type": "array", "items": _TEXT, LIST: True} for name in ("NMTOKENS", "IDREFS", "ENTITIES")},
    "boolean": {"type": "boolean"},
    "decimal": {"type": "number"},
    # INF and NaN are not numbers in JSON; they become null.
    "float": {"type": ["null", "number"]},
    "double": {"type": ["null", "number"]},
    "integer": {"type": "integer"},
    "nonNegativeInteger": {"type": "integer", "minimum": 0},
    "positiveInteger": {"type": "integer", "minimum": 1},
    "nonPositiveInteger": {"type": "integer", "maximum": 0},
    "negativeInteger": {"type": "integer", "maximum": -1},
    **{
        name: {"type": "integer", "minimum": -(2 ** (bits - 1)), "maximum": 2 ** (bits - 1) - 1}
        for name, bits in _BITS.items()
    },
    **{
        f"unsigned{name.capitalize()}": {"type": "integer", "minimum": 0, "maximum": 2**bits - 1}
        for name, bits in _BITS.items()
    },
    "dateTime": {"type": "string", "format": "date-time"},
    "dateTimeStamp": {"type": "string", "format": "date-time"},
    "date": {"type": "string", "format": "date"},
    "base64Binary": {"type": "string", "contentEncoding": "base64"},
    "hexBinary": {"type": "string", "contentEncoding": "base16"},
    "anyType": {},
}

_LENGTHS = {"minLength": ("minLength",), "maxLength": ("maxLength",), "length": ("minLength", "maxLength")}
_BOUNDS = {
    "minInclusive": ("minimum", max),
    "minExclusive": ("exclusiveMinimum", max),
    "maxInclusive": ("maximum", min),
    "maxExclusive": ("exclusiveMaximum", min),
}


def restricted(base: dict[str, Any], facets: XmlNode) -> dict[str, Any]:
    """Return a type's schema with the facets of an ``xs:restriction``."""
    schema = dict(base)
    declared = schema.get("type")
    kinds = {declared} if isinstance(declared, str) else set(declared or ())
    values = [facet.get("value") for facet in facets if local(facet.tag) == "enumeration"]
    if values:
        choices = [plain(scalar(value, base)) for value in values]
        schema["enum"] = _distinct(choices)
        schema = nullable({**schema, "type": _only(kinds - {"null"})}) if "null" in kinds else schema
    for name, value in _facets(facets):
        if name in _LENGTHS and kinds == {"string"} and not {"format", "contentEncoding"} & schema.keys():
            schema.update(dict.fromkeys(_LENGTHS[name], int(value)))
        elif name in _LENGTHS and kinds == {"array"}:
            schema.update({key.replace("Length", "Items"): int(value) for key in _LENGTHS[name]})
        elif name in _BOUNDS and kinds & {"integer", "number"}:
            key, tighter = _BOUNDS[name]
            bound = plain(scalar(value, {"type": "integer" if "integer" in kinds else "number"}))
            if isinstance(bound, str) or bound is None:
                continue  # INF
            schema[key] = tighter(schema[key], bound) if key in schema else bound
        elif name == "totalDigits" and kinds == {"integer"} and int(value) <= _MOST_DIGITS:
            most = 10 ** int(value) - 1
            schema["minimum"] = max(schema.get("minimum", -most), -most)
            schema["maximum"] = min(schema.get("maximum", most), most)
        elif name == "pattern":
            schema["$comment"] = f"pattern of XML Schema: {value}"
    return schema


def _facets(node: XmlNode) -> Iterator[tuple[str, str]]:
    for facet in node:
        name, value = local(facet.tag), facet.get("value").strip()
        if name in (*_LENGTHS, "totalDigits") and not (value.isdecimal() and len(value) < 5):
            continue
        yield name, value


def joined(schemas: list[dict[str, Any]]) -> dict[str, Any]:
    """Return one schema for an ``xs:union``: all types, and all choices if each member has some."""
    kinds: list[str] = []
    for schema in schemas:
        declared = schema.get("type", "string")
        kinds += [kind for kind in ([declared] if isinstance(declared, str) else declared) if kind not in kinds]
    union: dict[str, Any] = {"type": _only(kinds)}
    if "array" in kinds:
        return {}
    if schemas and all("enum" in schema for schema in schemas):
        union["enum"] = _distinct([value for schema in schemas for value in schema["enum"]])
    formats = {schema.get("format") for schema in schemas}
    if len(formats) == 1 and None not in formats:
        union["format"] = formats.pop()
    return union


def _distinct(values: list[Any]) -> list[Any]:
    """Return the values without duplicates; 1 differs from true."""
    if any(isinstance(value, list) for value in values):
        return [value for index, value in enumerate(values) if value not in values[:index]]
    return [value for _, value in dict.fromkeys((type(value), value) for value in values)]


def plain(value: Any) -> Any:
    """Return a value for a schema, with floats for decimals; None for numbers beyond floats."""
    if not isinstance(value, Decimal):
        return value
    if value.adjusted() > _MOST_ZEROS:
        return None
    return int(value) if value == value.to_integral_value() and abs(value) < 2**63 else float(value)


def _only(kinds: Any) -> Any:
    kinds = list(kinds)
    return kinds[0] if len(kinds) == 1 else kinds
