"""Reading catalogs: Singer's, and those of the Meltano SDK."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Literal

import msgspec
from msgspec import Struct

from balog.common.config import load
from balog.common.config.problems import problems
from balog.common.errors import ConfigError
from balog.tap.catalog.entry import Catalog, CatalogEntry, Metadata, Method
from balog.tap.errors import TapConfigProblems

MAX_CATALOG_BYTES = 256 * 1024 * 1024
_MAX_PROBLEMS = 100


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


def parse_catalog(document: Any, source: str = "catalog") -> Catalog:
    """Return the catalog of a document.

    In addition to Singer's form these are accepted: ``stream`` without ``tap_stream_id``; ``selected`` next to it; key
    properties only in metadata (``table-key-properties``, ``view-key-properties``).

    Args:
        document: decoded JSON.
        source: the file, for errors.

    Raises:
        TapConfigProblems: it is not a catalog, or has a stream twice.
    """
    errors = list(islice(_problems(document, source), _MAX_PROBLEMS))
    if errors:
        raise TapConfigProblems(errors)
    decoded = msgspec.convert(document, _Document)
    entries = map(_entry, decoded.streams)
    return Catalog({entry.tap_stream_id: entry for entry in entries})


class _Item(Struct):
    breadcrumb: list[str]
    metadata: dict[str, Any]


class _Stream(Struct):
    tap_stream_id: str | None = None
    stream: str | None = None
    schema: dict[str, Any] | None = None
    key_properties: list[str] | None = None
    replication_method: Method | Literal[""] | None = None
    replication_key: str | None = None
    metadata: list[_Item] | None = None
    selected: Any = None

    def __post_init__(self) -> None:
        if not (self.tap_stream_id or self.stream):
            raise ValueError("the field 'tap_stream_id' is missing")


class _Document(Struct):
    streams: list[_Stream]


class _TopMetadata(Struct, rename="kebab"):
    replication_method: Method | Literal[""] | None = None
    replication_key: str | None = None


def _problems(document: Any, source: str) -> Iterator[ConfigError]:
    """Yield what is wrong with a document, with the path of each."""
    yield from problems(document, _Document, source)
    streams = document.get("streams") if isinstance(document, Mapping) else None
    names = set()
    for number, item in enumerate(streams if isinstance(streams, list) else ()):
        path = f"$.streams[{number}]"
        entry = item if isinstance(item, Mapping) else {}
        name = entry.get("tap_stream_id") or entry.get("stream")
        if isinstance(name, str):
            if name in names:
                yield ConfigError(f"the stream {name!r} is there twice", source, path)
            names.add(name)
        listed = entry.get("metadata")
        for index, each in enumerate(listed if isinstance(listed, list) else ()):
            inner = each.get("metadata") if isinstance(each, Mapping) else None
            for problem in problems(inner, _TopMetadata) if isinstance(inner, dict) else ():
                inside = problem.path.removeprefix("$")
                yield ConfigError(problem.reason, source, f"{path}.metadata[{index}].metadata{inside}")


def _entry(item: _Stream) -> CatalogEntry:
    metadata: Metadata = {}
    for each in item.metadata or ():
        metadata.setdefault(tuple(each.breadcrumb), {}).update(each.metadata)
    if isinstance(item.selected, bool):
        metadata.setdefault((), {}).setdefault("selected", item.selected)
    top = metadata.get((), {})
    keys = item.key_properties or top.get("table-key-properties") or top.get("view-key-properties") or []
    name = item.tap_stream_id or item.stream or ""
    return CatalogEntry(
        tap_stream_id=name,
        stream=item.stream or name,
        schema=item.schema or {},
        key_properties=[str(key) for key in keys] if isinstance(keys, list) else [],
        replication_method=item.replication_method or None,
        replication_key=item.replication_key or None,
        metadata={crumb: values for crumb, values in metadata.items() if values},
    )
