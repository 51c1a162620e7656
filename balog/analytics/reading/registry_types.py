"""The JSON Schemas of payload types as Spark types.

The schema of a payload type comes from a registry (``balog.registry``) in a folder or at a URL, from the schemas that
come with balog, or from a file. ``balog.registry.columns`` defines how its properties become columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import types as t

from balog.analytics.reading.spark_types import DEFAULT, plain
from balog.common.errors import ConfigError
from balog.common.storage import is_url
from balog.registry import UnknownTypeError, UnknownVersionError, open_registry
from balog.registry.columns import Column, List, Struct, column_of
from balog.registry.json_schema import decode_schema


def payload_type(cls_type: str, location: str | None = None) -> t.StructType | None:
    """Return the columns of a payload type, or None if it has no schema.

    Args:
        cls_type: the payload type.
        location: the folder or URL of a registry, which has priority over the schemas that come with balog; or a JSON
            Schema file.

    Raises:
        ConfigError: ``location`` does not exist, or a schema is not the JSON Schema of an object.
        StorageError: a URL can't be read.
    """
    schema = find_schema(cls_type, location)
    if schema is None:
        return None
    name, document = schema
    kind = spark_type(document, name)
    if not isinstance(kind, t.StructType):
        raise ConfigError("expected the JSON Schema of an object with properties", name)
    return kind


def typed_events(cls_type: str, location: str | None = None) -> t.StructType:
    """Return the columns of events of one payload type: ``DEFAULT`` without ``quarantine``, with a typed payload.

    Raises:
        ConfigError: see ``payload_type``; or the type has no schema.
    """
    payload = payload_type(cls_type, location)
    if payload is None:
        raise ConfigError(
            f"no schema of the payload type {cls_type!r:.100}; name its file or folder with the option schemas, or "
            "give the reader a schema of its own",
            "format('balog') with option cls_type",
        )
    kinds = {field.name: payload if field.name == "payload" else field.dataType for field in DEFAULT}
    return t.StructType([t.StructField(name, kind) for name, kind in kinds.items() if name != "quarantine"])


def find_schema(cls_type: str, location: str | None = None) -> tuple[str, Any] | None:
    """Return the name and the decoded document of a payload type's schema; see ``payload_type``."""
    root = location
    if location is not None and not is_url(location):
        path = Path(location)
        if not path.exists():
            raise ConfigError("no such schema file or folder", location)
        if path.is_file():
            document = decode_schema(path.read_bytes(), location)
            if _names(document) in (None, cls_type):
                return location, document
            root = None
    with open_registry(root) as registry:
        try:
            schema = registry.get(cls_type)
        except (UnknownTypeError, UnknownVersionError):
            return None
    name = f"{cls_type} {schema.version}"
    if schema.form == "protobuf":
        from balog.registry.protobuf import compile_proto

        return name, compile_proto(schema.source, schema.message, name).json_schema()
    return name, decode_schema(schema.source, name)


def _names(document: Mapping[str, Any]) -> Any:
    """Return the ``cls_type`` of a payload's schema, or None."""
    properties = document.get("properties")
    declared = properties.get("cls_type") if isinstance(properties, dict) else None
    return declared.get("const") if isinstance(declared, dict) else None


def spark_type(document: Mapping[str, Any], where: str = "a JSON Schema") -> t.DataType:
    """Return the Spark type of a JSON Schema; ``balog.registry.columns`` defines the rules.

    Raises:
        ConfigError: a ``$ref`` leads nowhere, or out of the document.
    """
    return _as_spark(column_of(document, lambda schema: referred(document, schema["$ref"], where)))


def _as_spark(column: Column) -> t.DataType:
    if isinstance(column, Struct):
        return t.StructType([t.StructField(name, _as_spark(kind)) for name, kind in column.fields.items()])
    if isinstance(column, List):
        return t.ArrayType(_as_spark(column.item))
    if isinstance(column, str):
        return plain(column)
    return t.MapType(t.StringType(), _as_spark(column.value))


def referred(root: Any, reference: Any, where: str) -> Any:
    """Return the part of a JSON Schema that a ``$ref`` names.

    Raises:
        ConfigError: it leads nowhere, or out of the document.
    """
    node = root
    text = str(reference)
    if not (text == "#" or text.startswith("#/")):
        raise ConfigError(f"$ref {text[:100]} leads out of the document; bundle the schema", where)
    for step in text.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(node, dict) or key not in node:
            raise ConfigError(f"$ref {text[:100]} leads nowhere", where)
        node = node[key]
    return node
