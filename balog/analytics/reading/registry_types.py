"""The registry's JSON Schemas of payload types as Spark types.

A payload type's schema is the registry's (``balog.registry``): of a folder or URL, or one that comes with balog; or it
is in a file of the reader's own. Its properties become columns:

- ``string`` → string, with the format ``date-time`` timestamp, ``date`` date; ``integer`` → bigint; ``number`` →
  double; ``boolean`` → boolean; an enum or a const has its values' type;
- an array is an array of its items; an object with properties a struct, any other object a map of string to the type
  that ``additionalProperties`` gives, or to text (JSON text where a value is not a string);
- a value that may be null is just the other type; a number that may also be written as a string with a numeric pattern
  is a number; integer and number together are double; any other mixture, a type within itself, what has no type at all,
  and what is nested more than 64 deep is its JSON text in a string.

Of names that differ by case alone the first one stays: Spark's columns know no case.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import types as t

from balog.analytics.reading.schemas import DEFAULT
from balog.errors import ConfigError
from balog.registry import UnknownTypeError, UnknownVersionError, open_registry
from balog.registry.json_schema import decode_schema
from balog.registry.naming import is_type
from balog.storage import is_url

__all__ = ["find_schema", "payload_type", "spark_type", "typed_events"]

_DEEPEST = 64
_FORMATS = {"date-time": t.TimestampType(), "date": t.DateType()}
_TEXT = t.StringType()


def payload_type(cls_type: str, version: str | None = None, place: str | None = None) -> t.StructType | None:
    """Give the columns of a payload type, or None when it has no schema.

    Args:
        version: of the payload; the latest when None.
        place: a registry's folder or URL, which goes before the schemas that come with balog; or a JSON Schema file. In
            a folder types may be below its ``payload``, and ``<cls_type>.json`` serves a type without versions.

    Raises:
        ConfigError: ``place`` does not exist, or a schema is no JSON Schema of an object.
        StorageError: a URL can't be read.
    """
    found = find_schema(cls_type, version, place)
    if found is None:
        return None
    name, document = found
    kind = spark_type(document, name)
    if not isinstance(kind, t.StructType):
        raise ConfigError("want the JSON Schema of an object with properties", name)
    return kind


def typed_events(cls_type: str, place: str | None = None) -> t.StructType:
    """Give the columns of events of one payload type: ``DEFAULT``'s without ``quarantine``, the payload typed.

    Raises:
        ConfigError: as ``payload_type``, and when the type has no schema.
    """
    payload = payload_type(cls_type, place=place)
    if payload is None:
        raise ConfigError(
            f"no schema of the payload type {cls_type!r:.100}; name its file or folder with the option schemas, or "
            "give the reader a schema of its own",
            "format('balog') with option cls_type",
        )
    kinds = {field.name: payload if field.name == "payload" else field.dataType for field in DEFAULT}
    return t.StructType([t.StructField(name, kind) for name, kind in kinds.items() if name != "quarantine"])


def find_schema(cls_type: str, version: str | None = None, place: str | None = None) -> tuple[str, Any] | None:
    """Give a payload type's schema as its name and the decoded document; arguments and errors as ``payload_type``'s."""
    root, alone = place, None
    if place is not None and not is_url(place):
        path = Path(place)
        if not path.exists():
            raise ConfigError("no such schema file or folder", place)
        if path.is_file():
            document = decode_schema(path.read_bytes(), place)
            if _names(document) in (None, cls_type):
                return place, document
            root = None
        else:
            folder = path / "payload" if (path / "payload").is_dir() else path
            root = str(folder)
            if version is None and is_type(cls_type) and not (folder / cls_type).is_dir():
                alone = next((file for at in (folder, path) if (file := at / f"{cls_type}.json").is_file()), None)
    if alone is not None:
        return str(alone), decode_schema(alone.read_bytes(), str(alone))
    with open_registry(root) as registry:
        try:
            schema = registry.get(cls_type, version)
        except (UnknownTypeError, UnknownVersionError):
            return None
    name = f"{cls_type} {schema.version}"
    if schema.form == "protobuf":
        from balog.registry.protobuf import compile_proto

        return name, compile_proto(schema.source, schema.message, name).json_schema()
    return name, decode_schema(schema.source, name)


def _names(document: Mapping[str, Any]) -> Any:
    """Give the cls_type that a payload's schema is for, or None when it doesn't say."""
    properties = document.get("properties")
    said = properties.get("cls_type") if isinstance(properties, dict) else None
    return said.get("const") if isinstance(said, dict) else None


def spark_type(document: Mapping[str, Any], where: str = "a JSON Schema") -> t.DataType:
    """Give the Spark type of what a JSON Schema describes; the module's docstring has the rules.

    Raises:
        ConfigError: a ``$ref`` that leads nowhere or out of the document.
    """
    return _Reader(document, where).read(document, ())


class _Reader:
    def __init__(self, root: Mapping[str, Any], where: str) -> None:
        self._root, self._where = root, where

    def read(self, schema: Any, above: tuple[int, ...]) -> t.DataType:
        """Turn one (sub-)schema into a type; ``above`` are the ids of those it is inside of."""
        if not isinstance(schema, dict):
            return _TEXT
        if id(schema) in above or len(above) > _DEEPEST:
            return _TEXT
        above = (*above, id(schema))
        if "$ref" in schema:
            return self.read(self._referred(schema["$ref"]), above)
        parts = schema.get("anyOf") or schema.get("oneOf")
        if isinstance(parts, list):
            return _joined(
                [part for part in parts if not _is_null(part)], [self.read(p, above) for p in parts if not _is_null(p)]
            )
        if isinstance(schema.get("allOf"), list):
            return self._all(schema, above)
        names = schema.get("type", [])
        kinds = [names] if isinstance(names, str) else list(names)
        if not kinds:
            kinds = ["object"] if "properties" in schema else sorted(_valued(schema))
        kinds = [kind for kind in kinds if kind != "null"]
        made = [self._one(kind, schema, above) for kind in kinds]
        return _joined([{**schema, "type": kind} for kind in kinds], made)

    def _one(self, kind: str, schema: dict[str, Any], above: tuple[int, ...]) -> t.DataType:
        if kind == "string":
            return _FORMATS.get(str(schema.get("format")), _TEXT)
        if kind == "integer":
            return t.LongType()
        if kind == "number":
            return t.DoubleType()
        if kind == "boolean":
            return t.BooleanType()
        if kind == "array":
            return t.ArrayType(self.read(schema.get("items"), above))
        if kind != "object":
            return _TEXT
        properties = schema.get("properties")
        if isinstance(properties, dict) and properties:
            return t.StructType(
                [t.StructField(name, self.read(inner, above)) for name, inner in _distinct(properties.items())]
            )
        return t.MapType(_TEXT, self.read(schema.get("additionalProperties"), above))

    def _all(self, schema: dict[str, Any], above: tuple[int, ...]) -> t.DataType:
        rest = {name: value for name, value in schema.items() if name != "allOf"}
        made = [self.read(part, above) for part in (*schema["allOf"], *([rest] if _says_type(rest) else []))]
        structs = [kind for kind in made if isinstance(kind, t.StructType)]
        if structs:
            fields = ((field.name, field) for kind in structs for field in kind)
            return t.StructType([field for _, field in _distinct(fields)])
        told = [kind for kind in made if kind != _TEXT]
        return told[0] if told else _TEXT

    def _referred(self, reference: Any) -> Any:
        node: Any = self._root
        text = str(reference)
        if not (text == "#" or text.startswith("#/")):
            raise ConfigError(f"$ref {text[:100]} leads out of the document; bundle the schema", self._where)
        for step in text.split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(node, dict) or key not in node:
                raise ConfigError(f"$ref {text[:100]} leads nowhere", self._where)
            node = node[key]
        return node


def _distinct(items: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    seen: set[str] = set()
    for name, item in items:
        if name.lower() not in seen:
            seen.add(name.lower())
            yield name, item


def _says_type(schema: Mapping[str, Any]) -> bool:
    return bool({"type", "properties", "enum", "const", "$ref", "anyOf", "oneOf"} & set(schema))


def _is_null(schema: Any) -> bool:
    return isinstance(schema, dict) and (
        schema.get("type") == "null" or ("const" in schema and schema["const"] is None)
    )


def _valued(schema: Mapping[str, Any]) -> set[str]:
    """Give the names of the types of an enum's or a const's values."""
    values = schema["enum"] if isinstance(schema.get("enum"), list) else [schema["const"]] if "const" in schema else []
    names = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}
    return {names[type(value)] for value in values if value is not None}


def _joined(schemas: Sequence[Any], kinds: Sequence[t.DataType]) -> t.DataType:
    """Give the one type for a value that may be of any of these."""
    numbers = [kind for kind in kinds if isinstance(kind, (t.LongType, t.DoubleType))]
    others = [
        kind for schema, kind in zip(schemas, kinds)
        if kind not in numbers and not (numbers and _is_numeric_text(schema))
    ]  # fmt: skip
    if numbers and not others:
        return t.DoubleType() if t.DoubleType() in numbers else t.LongType()
    if not numbers and others and all(kind == others[0] for kind in others):
        return others[0]
    return _TEXT


def _is_numeric_text(schema: Any) -> bool:
    pattern = schema.get("pattern") if isinstance(schema, dict) else None
    try:
        return isinstance(pattern, str) and bool(re.search(pattern, "1")) and not re.search(pattern, "x")
    except re.error:
        return False
