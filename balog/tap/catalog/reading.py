"""Catalogs from files, in every form that taps have been given them: metadata, and ``selected`` inside of schemas."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, cast

from balog.config import load
from balog.errors import ConfigError
from balog.tap.catalog.entry import Breadcrumb, Catalog, Entry, Metadata, Method
from balog.tap.catalog.nodes import properties_of
from balog.tap.errors import ConfigProblems

__all__ = ["MAX_CATALOG_BYTES", "parse_catalog", "read_catalog", "read_properties"]

MAX_CATALOG_BYTES = 256 * 1024 * 1024
_METHODS = ("FULL_TABLE", "INCREMENTAL", "LOG_BASED")
_MAX_PROBLEMS = 100
_DEEPEST = 100
_NAMED = {
    *("tap_stream_id", "stream", "schema", "key_properties", "replication_method", "replication_key", "metadata"),
    "selected",
}


def read_catalog(path: str | os.PathLike[str]) -> Catalog:
    """Read a catalog; see ``parse_catalog``.

    Raises:
        ConfigProblems: it cannot be read, is not JSON, or is no catalog; each line with the place in the file.
    """
    try:
        document = load(path, dict[str, Any], MAX_CATALOG_BYTES)
    except ConfigError as error:
        raise ConfigProblems([error]) from None
    return parse_catalog(document, str(path))


def read_properties(path: str | os.PathLike[str]) -> Catalog:
    """Read a file for ``--properties``, the older name: the same document, ``selected`` inside of its schemas.

    Raises:
        ConfigProblems: as for a catalog.
    """
    return read_catalog(path)


def parse_catalog(document: Any, source: str = "catalog") -> Catalog:
    """Make a catalog of a document.

    Beside Singer's form these are understood: ``stream`` without ``tap_stream_id``; ``selected`` beside it; key
    properties in metadata alone (``table-key-properties``, ``view-key-properties``); ``selected`` and ``inclusion``
    inside of schemas, as older taps have them: what they say goes into metadata, where those do not say it. Where any
    property of an object has ``selected`` there, those without it are not selected.

    Args:
        document: as JSON decodes.
        source: the file that it came from.

    Raises:
        ConfigProblems: it is no catalog, or has a stream twice.
    """
    reader = _Reader(source)
    catalog = reader.catalog(document)
    if reader.problems:
        raise ConfigProblems(reader.problems[:_MAX_PROBLEMS])
    return catalog


class _Reader:
    def __init__(self, source: str) -> None:
        self._source = source
        self.problems: list[ConfigError] = []

    def catalog(self, document: Any) -> Catalog:
        catalog = Catalog()
        streams = document.get("streams") if isinstance(document, Mapping) else None
        if not isinstance(streams, list):
            self._problem("$", 'want {"streams": [...]}, as --discover writes it')
            return catalog
        for number, item in enumerate(streams):
            path = f"$.streams[{number}]"
            entry = self._entry(item, path)
            if entry is None:
                continue
            if entry.tap_stream_id in catalog.entries:
                self._problem(path, f"the stream {entry.tap_stream_id!r} is there twice")
            catalog.entries[entry.tap_stream_id] = entry
        return catalog

    def _entry(self, item: Any, path: str) -> Entry | None:
        if not isinstance(item, Mapping):
            self._problem(path, "want an object with tap_stream_id, stream, schema and metadata")
            return None
        name = item.get("tap_stream_id") or item.get("stream")
        if not isinstance(name, str):
            self._problem(path, "the field 'tap_stream_id' is missing, or is no text")
            return None
        stream = item.get("stream") or name
        if not isinstance(stream, str):
            self._problem(f"{path}.stream", "want a text")
            return None
        schema = item.get("schema")
        if schema is not None and not isinstance(schema, dict):
            self._problem(f"{path}.schema", "want a JSON Schema, an object")
            schema = None
        metadata = self._metadata(item.get("metadata"), f"{path}.metadata")
        plain = _lifted(schema or {}, (), metadata)
        if isinstance(item.get("selected"), bool):
            metadata.setdefault((), {}).setdefault("selected", item["selected"])
        top = metadata.get((), {})
        keys = item.get("key_properties") or top.get("table-key-properties") or top.get("view-key-properties") or []
        if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
            self._problem(f"{path}.key_properties", "want a list of names of properties")
            keys = []
        return Entry(
            tap_stream_id=name,
            stream=stream,
            schema=plain,
            key_properties=list(keys),
            replication_method=self._method(item.get("replication_method"), f"{path}.replication_method"),
            replication_key=self._key(item.get("replication_key"), f"{path}.replication_key"),
            metadata={crumb: said for crumb, said in metadata.items() if said},
            other={key: said for key, said in item.items() if key not in _NAMED},
        )

    def _metadata(self, said: Any, path: str) -> Metadata:
        metadata: Metadata = {}
        if said is None:
            return metadata
        if not isinstance(said, list):
            self._problem(path, 'want a list of {"breadcrumb": [...], "metadata": {...}}')
            return metadata
        for number, item in enumerate(said):
            place = f"{path}[{number}]"
            crumb = item.get("breadcrumb") if isinstance(item, Mapping) else None
            inner = item.get("metadata") if isinstance(item, Mapping) else None
            if not isinstance(crumb, list) or not all(isinstance(part, str) for part in crumb):
                self._problem(f"{place}.breadcrumb", 'want a list of texts: [], or ["properties", NAME]')
            elif not isinstance(inner, dict):
                self._problem(f"{place}.metadata", "want an object")
            else:
                metadata.setdefault(tuple(crumb), {}).update(inner)
                self._method(inner.get("replication-method"), f"{place}.metadata.replication-method")
                self._key(inner.get("replication-key"), f"{place}.metadata.replication-key")
        return metadata

    def _method(self, said: Any, path: str) -> Method | None:
        if said is None or said == "":
            return None
        if said not in _METHODS:
            self._problem(path, f"want one of {', '.join(_METHODS)}")
            return None
        return cast(Method, said)

    def _key(self, said: Any, path: str) -> str | None:
        if said is not None and not isinstance(said, str):
            self._problem(path, "want the name of a property")
            return None
        return said or None

    def _problem(self, path: str, reason: str) -> None:
        self.problems.append(ConfigError(reason, self._source, path))


def _lifted(schema: dict[str, Any], crumb: Breadcrumb, metadata: Metadata) -> dict[str, Any]:
    """Take ``selected`` and ``inclusion`` out of a schema and say them in the metadata, where those don't."""
    made = schema
    for key, kind in (("selected", bool), ("inclusion", str)):
        if isinstance(schema.get(key), kind):
            made = {name: said for name, said in made.items() if name != key}
            metadata.setdefault(crumb, {}).setdefault(key, schema[key])
    if len(crumb) > 2 * _DEEPEST:
        return made
    properties = properties_of(schema)
    are_chosen = any(
        isinstance(inner, dict) and isinstance(inner.get("selected"), bool) for inner in properties.values()
    )
    for name, inner in properties.items():
        if not isinstance(inner, dict):
            continue
        below = (*crumb, "properties", name)
        part = _lifted(inner, below, metadata)
        if are_chosen and not isinstance(inner.get("selected"), bool):
            metadata.setdefault(below, {}).setdefault("selected", False)
        if part is not inner:
            made = {**made, "properties": {**made["properties"], name: part}}
    if isinstance(schema.get("items"), dict):
        part = _lifted(schema["items"], (*crumb, "items"), metadata)
        if part is not schema["items"]:
            made = {**made, "items": part}
    return made
