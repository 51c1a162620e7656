"""Catalogs of any tap: tolerant reading, selection, and writing in both of Singer's forms.

The forms follow Singer's docs/DISCOVERY_MODE.md and SYNC_MODE.md. ``balog.tap.catalog`` is strict, for taps of the
toolkit.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

Document = dict[str, Any]
_MAX_TRIED = 10_000
_LINE_WITH_WORDS = re.compile(r"\S[^\n]*")


class DiscoveryOutput(Struct, frozen=True, kw_only=True):
    """The parsed output of ``--discover``.

    Attributes:
        document: the catalog; None if the output has none.
        fault: why it has none.
        noise: the number of lines before and after the catalog.
    """

    document: Document | None = None
    fault: str = ""
    noise: tuple[int, int] = (0, 0)


def read_discovery(stdout: bytes) -> DiscoveryOutput:
    """Find the catalog in the stdout of a tap."""
    try:
        text = stdout.decode()
    except UnicodeDecodeError:
        return DiscoveryOutput(fault="stdout is not UTF-8")
    if not text.strip():
        return DiscoveryOutput(fault="nothing was written to stdout")
    first_object = _first_object(text)
    if first_object is None:
        return DiscoveryOutput(fault="stdout holds no catalog")
    document, position, end = first_object
    noise = text.count("\n", 0, position), sum(1 for _ in _LINE_WITH_WORDS.finditer(text, end))
    if not isinstance(document.get("streams"), list):
        return DiscoveryOutput(fault="its catalog has no list of streams", noise=noise)
    try:
        copy.deepcopy(document)
    except RecursionError:
        return DiscoveryOutput(fault="its catalog is nested too deep", noise=noise)
    return DiscoveryOutput(document=document, noise=noise)


def _first_object(text: str) -> tuple[Document, int, int] | None:
    """Return the first JSON object that is not a message, with its start and end; 10,000 places are tried."""
    reader = json.JSONDecoder()
    position = len(text) - len(text.lstrip())
    for _ in range(_MAX_TRIED):
        try:
            document, end = reader.raw_decode(text, position)
        except (ValueError, RecursionError):
            document, end = None, 0
        if isinstance(document, dict) and "type" not in document:
            return document, position, end
        following = text.find("\n{", position + 1 if document is None else end - 1)
        if following < 0:
            break
        position = following + 1
    return None


def entries(document: Document | None) -> Iterator[Document]:
    """Yield the usable entries: objects with an id or a name."""
    for entry in (document or {}).get("streams") or ():
        if isinstance(entry, dict) and isinstance(entry.get("tap_stream_id", entry.get("stream")), str):
            yield entry


def id_of(entry: Document) -> str:
    """Return an entry's ``tap_stream_id``, or its name without one."""
    stream_id = entry.get("tap_stream_id")
    return stream_id if isinstance(stream_id, str) else str(entry.get("stream"))


def name_of(entry: Document) -> str:
    """Return the stream's name in messages."""
    name = entry.get("stream_alias") or entry.get("stream")
    return name if isinstance(name, str) else id_of(entry)


def metadata_of(entry: Document) -> dict[tuple[str, ...], Document]:
    """Return the metadata by breadcrumb, without malformed items."""
    by_breadcrumb: dict[tuple[str, ...], Document] = {}
    listed = entry.get("metadata")
    for item in listed if isinstance(listed, list) else ():
        crumb = item.get("breadcrumb") if isinstance(item, dict) else None
        metadata = item.get("metadata") if isinstance(item, dict) else None
        if isinstance(crumb, list) and isinstance(metadata, dict):
            by_breadcrumb.setdefault(tuple(str(step) for step in crumb), {}).update(metadata)
    return by_breadcrumb


def properties_of(entry: Document) -> Document:
    """Return the top-level properties of the schema."""
    schema = entry.get("schema")
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return properties if isinstance(properties, dict) else {}


def inclusion_of(entry: Document, name: str) -> Any:
    """Return a property's ``inclusion`` from the metadata, else from the schema, where older taps have it."""
    inclusion = metadata_of(entry).get(("properties", name), {}).get("inclusion")
    of_it = properties_of(entry).get(name)
    return of_it.get("inclusion") if inclusion is None and isinstance(of_it, dict) else inclusion


def has_inclusion(entry: Document) -> bool:
    """Return whether the entry declares an inclusion for any property."""
    return any(inclusion_of(entry, name) is not None for name in properties_of(entry))


def key_properties_of(entry: Document) -> list[str]:
    """Return the key properties from the metadata, else from the older field of the entry."""
    root = metadata_of(entry).get((), {})
    for keys in (root.get("table-key-properties"), root.get("view-key-properties"), entry.get("key_properties")):
        if isinstance(keys, list) and keys:
            return [str(name) for name in keys]
    return []


def method_of(entry: Document) -> Any:
    """Return the replication method: the selected one, else the forced one, else that of the older field."""
    root = metadata_of(entry).get((), {})
    return root.get("replication-method", root.get("forced-replication-method", entry.get("replication_method")))


def valid_keys_of(entry: Document) -> list[Any]:
    """Return the replication keys that users can choose from."""
    valid = metadata_of(entry).get((), {}).get("valid-replication-keys")
    return valid if isinstance(valid, list) else []


def replication_key_of(entry: Document) -> str:
    """Return the replication key; "" if the catalog has none or the method does not use one."""
    if method_of(entry) in ("FULL_TABLE", "LOG_BASED"):
        return ""
    valid = valid_keys_of(entry)
    keys = [metadata_of(entry).get((), {}).get("replication-key"), entry.get("replication_key")]
    return next((key for key in (*keys, *(valid if len(valid) == 1 else ())) if isinstance(key, str)), "")


def is_selected(entry: Document) -> bool:
    """Return whether the catalog selects a stream."""
    root, schema = metadata_of(entry).get((), {}), entry.get("schema")
    legacy = schema.get("selected") if isinstance(schema, dict) else None
    selected = root.get("selected", legacy if legacy is not None else entry.get("selected"))
    if selected is None:
        selected = root.get("inclusion") == "automatic" or root.get("selected-by-default", False)
    return bool(selected)


def select(
    document: Document, names: Iterable[str] | None = None, without: Mapping[str, str] | None = None
) -> Document:
    """Return a copy of a catalog that selects streams and their properties.

    Args:
        document: the catalog.
        names: ids of the streams to select; None selects all.
        without: by stream id, one property to deselect.
    """
    chosen, left_out = None if names is None else set(names), without or {}
    catalog = copy.deepcopy(document)
    for entry in entries(catalog):
        wanted = chosen is None or id_of(entry) in chosen
        metadata = metadata_of(entry)
        root = metadata.setdefault((), {})
        root["selected"] = wanted
        given = (root.get("forced-replication-method"), entry.get("replication_method"), root.get("replication-method"))
        if wanted and not any(given):  # as database taps leave it to users
            key = replication_key_of(entry) or next(iter(valid_keys_of(entry)), "")
            root["replication-method"] = "INCREMENTAL" if key else "FULL_TABLE"
            if key:
                root.setdefault("replication-key", key)
        for name in properties_of(entry):
            own = metadata.setdefault(("properties", name), {})
            if inclusion_of(entry, name) != "unsupported":
                own["selected"] = wanted and left_out.get(id_of(entry)) != name
        schema = entry.get("schema")
        has_selection = isinstance(schema, dict) and "selected" in schema  # some taps read it there, in a catalog too
        if has_selection or not isinstance(entry.get("metadata"), list) or not entry["metadata"]:
            _select_in_schema(entry, wanted, left_out.get(id_of(entry)))
        entry["metadata"] = [{"breadcrumb": list(crumb), "metadata": value} for crumb, value in metadata.items()]
    return catalog


def as_properties(document: Document) -> Document:
    """Return a catalog in the older form for ``--properties``, with the selection inside the schemas."""
    catalog = copy.deepcopy(document)
    for entry in entries(catalog):
        root = metadata_of(entry).get((), {})
        unchosen = {
            crumb[1]
            for crumb, metadata in metadata_of(entry).items()
            if len(crumb) == 2 and metadata.get("selected") is False
        }
        _select_in_schema(entry, bool(root.get("selected")), *unchosen)
    return catalog


def _select_in_schema(entry: Document, wanted: bool, *without: str | None) -> None:
    schema = entry.get("schema")
    if isinstance(schema, dict):
        schema["selected"] = wanted
        for name, own in properties_of(entry).items():
            if isinstance(own, dict):
                own["selected"] = wanted and name not in without


def spare_property(entry: Document) -> str:
    """Return a property that can be deselected: not automatic, no key and no replication key; "" if none can."""
    needed = {*key_properties_of(entry), replication_key_of(entry), *valid_keys_of(entry)}
    names = (name for name in reversed(properties_of(entry)) if name not in needed)
    return next((name for name in names if (inclusion_of(entry, name) or "available") == "available"), "")
