"""What gives the schemas of streams: a dict, a type, a file, a folder, a function, the registry."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from typing import Any

from balog.tap.errors import SchemaError
from balog.tap.relative_files import relative_to_caller
from balog.tap.schema.documents import Documents
from balog.tap.schema.flattening import flatten
from balog.tap.schema.references import resolve, resolve_target
from balog.tap.schema.validity import decode, fault

__all__ = ["SchemaSource", "from_type", "generated", "json_file", "json_folder", "registry_type", "schema_of"]

SchemaSource = Callable[[Any, str], dict[str, Any]]
"""Called as ``source(client, stream)`` when schemas are wanted; gives a JSON Schema, its references resolved.
``client`` is a function that gives the tap's client: a file needs none, and discovery must not ask for a login then."""


def schema_of(source: Any, client: Callable[[], Any], stream: str) -> dict[str, Any]:
    """Return a stream's schema as its SCHEMA message and the catalog have it: whole, without references.

    Args:
        source: a dict, a ``SchemaSource``, or a type: a msgspec Struct, a dataclass, a TypedDict.
        client: gives the tap's client, if the source wants it.
        stream: the stream's name.

    Raises:
        SchemaError: there is none, it is no JSON Schema, or not one of objects.
    """
    if source is None:
        raise SchemaError(f"stream {stream!r} has no schema; say one with tap.schema({stream!r}, …)")
    where = f"schema of {stream}"
    if isinstance(source, Mapping):
        found = dict(source)
    elif isinstance(source, type):
        found = from_type(source)(client, stream)
    elif callable(source):
        found = source(client, stream)
    else:
        raise SchemaError(f"want a schema, a type or a source of schemas; found {type(source).__name__}", where)
    if not isinstance(found, dict):
        raise SchemaError(f"want a schema, an object; found {type(found).__name__}", where)
    found = flatten(resolve(found, where, documents=Documents(_no_file)))
    kind = found.get("type", "object" if "properties" in found else None)
    if kind is not None and "object" not in ([kind] if isinstance(kind, str) else kind):
        raise fault(f"a record is an object, and this is a schema of {kind}", where, ("type",))
    return found if "type" in found else {"type": "object", **found}


def _no_file(path: str) -> bytes:
    """Refuse: what a function made, perhaps of what its source sent, has no business with the files of this machine."""
    raise ValueError("a schema that is from no file refers to none; take it with json_file")


def json_file(path: str | os.PathLike[str], *, depth: int = 2, allow_remote: bool = False) -> SchemaSource:
    """Take a schema from a JSON file; ``orders.json#/definitions/line`` takes a part of one.

    A relative path is seen from the file that calls this, also where that is inside of a zip.

    Args:
        path: the file's.
        depth: how often a schema that refers to itself is followed into itself.
        allow_remote: fetch http and https references.
    """
    read, place = relative_to_caller(path)

    def source(client: Any, stream: str) -> dict[str, Any]:
        file, _, fragment = place.partition("#")
        documents = Documents(read, allow_remote)
        target: Any = documents.open(file)
        if fragment:
            target = documents.find(f"#{fragment}", target)
            if isinstance(target, str):
                raise SchemaError(f"#{fragment} leads nowhere: {target}", file)
        return flatten(resolve_target(documents, target, depth))

    return source


def json_folder(path: str | os.PathLike[str], *, depth: int = 2, allow_remote: bool = False) -> SchemaSource:
    """Take each stream's schema from the file of its name in a folder, ``contacts`` from ``contacts.json``.

    What several share is best in a folder of its own in there (``shared/address.json``), which they refer to.
    A relative path is seen from the file that calls this; ``depth`` and ``allow_remote`` are as in ``json_file``.
    """
    read, place = relative_to_caller(path)
    documents = Documents(read, allow_remote)

    def source(client: Any, stream: str) -> dict[str, Any]:
        if stream in ("", ".", "..") or "/" in stream or "\0" in stream:
            raise SchemaError(f"a stream named {stream!r} can't have a file in a folder", place)
        return flatten(resolve_target(documents, documents.open(os.path.join(place, f"{stream}.json")), depth))

    return source


def generated(function: Callable[..., Mapping[str, Any]]) -> SchemaSource:
    """Take schemas from a function of the client (or of nothing) that gives those of many streams by name.

    It is called once, when the first schema is wanted.
    """
    takes_client = bool(inspect.signature(function).parameters)
    found: dict[str, Any] = {}

    def source(client: Any, stream: str) -> dict[str, Any]:
        if not found:
            found.update(function(client()) if takes_client else function())
        if stream not in found:
            raise SchemaError(
                f"{function.__name__} gives no schema of {stream!r}; it gives {', '.join(found) or 'none'}"
            )
        schema: dict[str, Any] = found[stream]
        return schema

    return source


def from_type(kind: Any) -> SchemaSource:
    """Take the schema that a msgspec Struct, a dataclass, an attrs class or a TypedDict is of."""

    def source(client: Any, stream: str) -> dict[str, Any]:
        import msgspec

        try:
            found = msgspec.json.schema(kind)
        except TypeError as error:
            name = getattr(kind, "__name__", str(kind))
            raise SchemaError(f"{name} has no JSON Schema: {str(error).splitlines()[0]}") from None
        return flatten(resolve(found))

    return source


def registry_type(name: str, version: str | None = None, place: str | None = None) -> SchemaSource:
    """Take the schema of a type in balog's registry, without what only its events have (``cls_type``, ``version``).

    Args:
        name: the type's ``cls_type``.
        version: SemVer; the latest when None.
        place: the registry's folder or URL; None means ``$BALOG_REGISTRY``, and without that the types of balog.
    """

    def source(client: Any, stream: str) -> dict[str, Any]:
        from balog.errors import BalogError
        from balog.registry import open_registry

        try:
            with open_registry(place or os.environ.get("BALOG_REGISTRY") or None) as registry:
                schema = registry.get(name, version)
        except BalogError as error:
            raise SchemaError(str(error)) from None
        if schema.form != "json":
            raise SchemaError(f"{name} {schema.version} is registered as {schema.form}; want JSON Schema")
        found = resolve(decode(schema.source, f"{name}/{schema.version}"))
        own = {"cls_type", "version"}
        members = {key: value for key, value in found.get("properties", {}).items() if key not in own}
        required = [key for key in found.get("required", []) if key not in own]
        rest = {key: value for key, value in found.items() if key not in ("properties", "required")}
        return flatten({**rest, "properties": members, **({"required": required} if required else {})})

    return source
