"""Reading catalogs in all their forms: metadata, and ``selected`` inside schemas."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, cast

from balog.config import load
from balog.errors import ConfigError
from balog.tap.catalog.entry import Breadcrumb, Catalog, CatalogEntry, Metadata, Method, properties_of
from balog.tap.errors import TapConfigProblems

MAX_CATALOG_BYTES = 256 * 1024 * 1024
_METHODS = ("FULL_TABLE", "INCREMENTAL", "LOG_BASED")
_MAX_PROBLEMS = 100
_DEEPEST = 100
_KNOWN_KEYS = {
    *("tap_stream_id", "stream", "schema", "key_properties", "replication_method", "replication_key", "metadata"),
    "selected",
}


def read_catalog(path: str | os.PathLike[str]) -> Catalog:
    """Read a catalog; see ``parse_catalog``.

    Raises:
        TapConfigProblems: it cannot be read, is not JSON, or is not a catalog; each line has the path in the file.
    """
    try:
        document = load(path, dict[str, Any], MAX_CATALOG_BYTES)
    except ConfigError as error:
        raise TapConfigProblems([error]) from None
    return parse_catalog(document, str(path))


def read_properties(path: str | os.PathLike[str]) -> Catalog:
    """Read a file of ``--properties``, the older form: the same document, with ``selected`` inside its schemas.

    Raises:
        TapConfigProblems: as for a catalog.
    """
    return read_catalog(path)


def parse_catalog(document: Any, source: str = "catalog") -> Catalog:
    """Return the catalog of a document.

    In addition to Singer's form these are accepted: ``stream`` without ``tap_stream_id``; ``selected`` next to it; key
    properties only in metadata (``table-key-properties``, ``view-key-properties``); ``selected`` and ``inclusion``
    inside schemas, as in older taps, which become metadata unless the metadata has them. If any property of an object
    has ``selected`` there, those without it are not selected.

    Args:
        document: decoded JSON.
        source: the file, for errors.

    Raises:
        TapConfigProblems: it is not a catalog, or has a stream twice.
    """
    parser = _CatalogParser(source)
    catalog = parser.catalog(document)
    if parser.problems:
        raise TapConfigProblems(parser.problems[:_MAX_PROBLEMS])
    return catalog


class _CatalogParser:
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

    def _entry(self, item: Any, path: str) -> CatalogEntry | None:
        if not isinstance(item, Mapping):
            self._problem(path, "want an object with tap_stream_id, stream, schema and metadata")
            return None
        name = item.get("tap_stream_id") or item.get("stream")
        if not isinstance(name, str):
            self._problem(path, "the field 'tap_stream_id' is missing, or is not a text")
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
        plain = _without_selection(schema or {}, (), metadata)
        if isinstance(item.get("selected"), bool):
            metadata.setdefault((), {}).setdefault("selected", item["selected"])
        top = metadata.get((), {})
        keys = item.get("key_properties") or top.get("table-key-properties") or top.get("view-key-properties") or []
        if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
            self._problem(f"{path}.key_properties", "want a list of names of properties")
            keys = []
        return CatalogEntry(
            tap_stream_id=name,
            stream=stream,
            schema=plain,
            key_properties=list(keys),
            replication_method=self._method(item.get("replication_method"), f"{path}.replication_method"),
            replication_key=self._key(item.get("replication_key"), f"{path}.replication_key"),
            metadata={crumb: values for crumb, values in metadata.items() if values},
            other={key: value for key, value in item.items() if key not in _KNOWN_KEYS},
        )

    def _metadata(self, items: Any, path: str) -> Metadata:
        metadata: Metadata = {}
        if items is None:
            return metadata
        if not isinstance(items, list):
            self._problem(path, 'want a list of {"breadcrumb": [...], "metadata": {...}}')
            return metadata
        for number, item in enumerate(items):
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

    def _method(self, method: Any, path: str) -> Method | None:
        if method is None or method == "":
            return None
        if method not in _METHODS:
            self._problem(path, f"want one of {', '.join(_METHODS)}")
            return None
        return cast(Method, method)

    def _key(self, key: Any, path: str) -> str | None:
        if key is not None and not isinstance(key, str):
            self._problem(path, "want the name of a property")
            return None
        return key or None

    def _problem(self, path: str, reason: str) -> None:
        self.problems.append(ConfigError(reason, self._source, path))


def _without_selection(schema: dict[str, Any], crumb: Breadcrumb, metadata: Metadata) -> dict[str, Any]:
    """Move ``selected`` and ``inclusion`` from a schema to the metadata, unless the metadata has them."""
    made = schema
    for key, kind in (("selected", bool), ("inclusion", str)):
        if isinstance(schema.get(key), kind):
            made = {name: value for name, value in made.items() if name != key}
            metadata.setdefault(crumb, {}).setdefault(key, schema[key])
    if len(crumb) > 2 * _DEEPEST:
        return made
    properties = properties_of(schema)
    have_selection = any(
        isinstance(inner, dict) and isinstance(inner.get("selected"), bool) for inner in properties.values()
    )
    for name, inner in properties.items():
        if not isinstance(inner, dict):
            continue
        below = (*crumb, "properties", name)
        part = _without_selection(inner, below, metadata)
        if have_selection and not isinstance(inner.get("selected"), bool):
            metadata.setdefault(below, {}).setdefault("selected", False)
        if part is not inner:
            made = {**made, "properties": {**made["properties"], name: part}}
    if isinstance(schema.get("items"), dict):
        part = _without_selection(schema["items"], (*crumb, "items"), metadata)
        if part is not schema["items"]:
            made = {**made, "items": part}
    return made
