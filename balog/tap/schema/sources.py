"""Sources of streams' schemas: dicts, types, files, folders, functions and the registry."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from typing import Any

import balog
from balog.tap.config.relative_files import relative_to_caller
from balog.tap.errors import SchemaError
from balog.tap.records.validation import RecordValidator
from balog.tap.schema.documents import Documents, fault
from balog.tap.schema.references import flatten, resolve, resolve_target

SchemaSource = Callable[[Any, str], dict[str, Any]]
"""Called as ``source(client, stream)``; returns a JSON Schema with resolved references.
``client`` is a function that returns the tap's client, so that discovery from files needs no login."""


def schema_of(source: Any, client: Callable[[], Any], stream: str) -> dict[str, Any]:
    """Return a stream's schema for its SCHEMA message and the catalog, with resolved references.

    Args:
        source: a dict, a ``SchemaSource``, or a type: a msgspec Struct, a dataclass, a TypedDict.
        client: returns the tap's client, for sources that need it.
        stream: the stream's name.

    Raises:
        SchemaError: there is no schema, it is not a JSON Schema, or it is not the schema of an object.
    """
    if source is None:
        raise SchemaError(f"stream {stream!r} has no schema; declare one with tap.schema({stream!r}, …)")
    where = f"schema of {stream}"
    if source == "inferred":
        raise SchemaError(
            "is inferred from records when the tap runs as a program; declare one to use it without", where
        )
    if isinstance(source, Mapping):
        schema = dict(source)
    elif isinstance(source, type):
        schema = _of_type(source)
    elif callable(source):
        schema = source(client, stream)
    else:
        raise SchemaError(f"expected a schema, a type or a source of schemas; found {type(source).__name__}", where)
    if not isinstance(schema, dict):
        raise SchemaError(f"expected a schema, an object; found {type(schema).__name__}", where)
    return _of_records(flatten(resolve(schema, where, documents=Documents(_no_file))), where)


def _of_records(schema: dict[str, Any], source: str) -> dict[str, Any]:
    """Return the schema of records, with its type.

    Raises:
        SchemaError: a value of the schema is no object.
    """
    kind = schema.get("type", "object" if "properties" in schema else None)
    if kind is not None and "object" not in ([kind] if isinstance(kind, str) else kind):
        raise fault(f"a record is an object, and this is a schema of {kind}", source, ("type",))
    return schema if "type" in schema else {"type": "object", **schema}


def _of_file(documents: Documents, file: str) -> dict[str, Any]:
    schema = flatten(resolve_target(documents, documents.open(file)))
    _of_records(schema, file)
    if reason := _fault(schema, schema):
        if not _fault({}, schema):
            raise SchemaError(reason, file)
        balog.get_logger("balog.tap.schema").warning(f"{file}: only types are checked: {reason}")  # its $schema
    return schema


def _fault(schema: dict[str, Any], document: dict[str, Any]) -> str:
    return RecordValidator(schema, document, (), lambda crumb: True).fault()


def _no_file(path: str) -> bytes:
    """Reject reading a file: a schema of a function can come from the source, which must not read local files."""
    raise ValueError("a schema without a file cannot reference files; load it with json_file")


def json_file(path: str | os.PathLike[str]) -> SchemaSource:
    """Return a source that reads a JSON file.

    Args:
        path: relative to the file of the caller, or absolute.
    """
    file, documents = relative_to_caller(path), Documents()

    def source(client: Any, stream: str) -> dict[str, Any]:
        return _of_file(documents, file)

    return source


def json_folder(path: str | os.PathLike[str]) -> SchemaSource:
    """Return a source that reads the file with the stream's name in a folder: ``contacts.json`` for ``contacts``.

    Schemas can reference shared ones in a subfolder, such as ``shared/address.json``. The path is relative to the file
    of the caller.
    """
    folder, documents = relative_to_caller(path), Documents()

    def source(client: Any, stream: str) -> dict[str, Any]:
        if stream in ("", ".", "..") or "/" in stream or "\0" in stream:
            raise SchemaError(f"a stream named {stream!r} can't have a file in a folder", folder)
        return _of_file(documents, os.path.join(folder, f"{stream}.json"))

    return source


def generated(function: Callable[..., Mapping[str, Any]]) -> SchemaSource:
    """Return a source for a function that returns the schemas of many streams by name.

    The function takes the client or nothing, and is called once, for the first schema.
    """
    takes_client = bool(inspect.signature(function).parameters)
    schemas: dict[str, Any] = {}

    def source(client: Any, stream: str) -> dict[str, Any]:
        if not schemas:
            schemas.update(function(client()) if takes_client else function())
        if stream not in schemas:
            raise SchemaError(
                f"{function.__name__} returns no schema for {stream!r}; it returns {', '.join(schemas) or 'none'}"
            )
        schema: dict[str, Any] = schemas[stream]
        return schema

    return source


def _of_type(kind: type) -> dict[str, Any]:
    """Return the schema of a msgspec Struct, a dataclass, an attrs class or a TypedDict."""
    import msgspec

    try:
        return msgspec.json.schema(kind)
    except TypeError as error:
        raise SchemaError(f"{kind.__name__} has no JSON Schema: {str(error).splitlines()[0]}") from None
