"""Rules of the catalog's metadata: inclusion, keys and replication, as user interfaces need them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from balog.verify.catalogs import (
    entries,
    has_inclusion,
    inclusion_of,
    key_properties_of,
    metadata_of,
    name_of,
    properties_of,
    replication_key_of,
)
from balog.verify.rules.discovery import catalog_of
from balog.verify.rules.registration import DISCOVERY_MODE, PRACTICE, Violation, check
from balog.verify.trials import Skip, Trials

__all__: list[str] = []

_METHODS = ("FULL_TABLE", "INCREMENTAL", "LOG_BASED")
_INCLUSIONS = ("available", "automatic", "unsupported")


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "inclusion": ("one of available, automatic, unsupported", lambda value: value in _INCLUSIONS),
    "selected-by-default": ("true or false", lambda value: isinstance(value, bool)),
    "valid-replication-keys": ("a list of names", _is_names),
    "table-key-properties": ("a list of names", _is_names),
    "view-key-properties": ("a list of names", _is_names),
    "schema-name": ("a text", lambda value: isinstance(value, str)),
    "database-name": ("a text", lambda value: isinstance(value, str)),
    "sql-datatype": ("a text", lambda value: isinstance(value, str)),
    "is-view": ("true or false", lambda value: isinstance(value, bool)),
    "row-count": ("a whole number", lambda value: isinstance(value, int)),
}


@check(
    "breadcrumbs-exist", "discovery", "warning", 3, DISCOVERY_MODE,
    "Write metadata only for parts of the schema: [] is the stream, [\"properties\", NAME] a property.",
)  # fmt: skip
def breadcrumbs_exist(trials: Trials) -> Iterator[Violation]:
    """Each metadata item has a unique breadcrumb that exists in the schema."""
    for entry in entries(catalog_of(trials)):
        listed, seen = entry.get("metadata"), set()
        for number, item in enumerate(listed if isinstance(listed, list) else ()):
            crumb = item.get("breadcrumb") if isinstance(item, dict) else None
            if not isinstance(crumb, list) or not isinstance(item.get("metadata"), dict):
                yield Violation(f"metadata[{number}] is not a breadcrumb (list) with metadata (object)", name_of(entry))
                continue
            if tuple(map(str, crumb)) in seen:
                yield Violation(f"two items have the breadcrumb {'.'.join(map(str, crumb)) or '[]'}", name_of(entry))
            seen.add(tuple(map(str, crumb)))
            node = entry.get("schema")
            for step in crumb:
                node = node.get(step) if isinstance(node, dict) and isinstance(step, str) else None
            if node is None:
                yield Violation(f"the breadcrumb {'.'.join(map(str, crumb))} does not exist", name_of(entry))


@check(
    "metadata-is-publishable", "discovery", "warning", 4, PRACTICE,
    "Use the metadata values of docs/DISCOVERY_MODE.md: user interfaces show and return no others.",
)  # fmt: skip
def metadata_is_publishable(trials: Trials) -> Iterator[Violation]:
    """Metadata values have the types that user interfaces support."""
    for entry in entries(catalog_of(trials)):
        for crumb, metadata in metadata_of(entry).items():
            where = ".".join(crumb) or "the stream"
            for key, value in metadata.items():
                wanted, fits = _KINDS.get(key, ("a value", lambda value: value is not None))
                if not fits(value):
                    yield Violation(f"{key} of {where} is not {wanted}", name_of(entry))


@check(
    "inclusion-is-said", "discovery", "warning", 4, DISCOVERY_MODE,
    "Write `inclusion` for each property: available, automatic or unsupported.",
)  # fmt: skip
def inclusion_is_declared(trials: Trials) -> Iterator[Violation]:
    """Each top-level property has an ``inclusion``."""
    for entry in entries(catalog_of(trials)):
        schema = properties_of(entry)
        without = [name for name in schema if inclusion_of(entry, name) is None]
        if without:
            yield Violation(
                f"{len(without)} of {len(schema)} properties have no inclusion: {_some(without)}", name_of(entry)
            )


@check(
    "keys-exist", "discovery", "error", 6, DISCOVERY_MODE,
    "In `table-key-properties`, name properties of the schema.",
)  # fmt: skip
def keys_exist(trials: Trials) -> Iterator[Violation]:
    """Key properties are properties of the schema."""
    for entry in entries(catalog_of(trials)):
        missing = [name for name in key_properties_of(entry) if name not in properties_of(entry)]
        if missing:
            yield Violation(f"the schema has no {_some(missing)}", name_of(entry))


@check(
    "keys-are-automatic", "discovery", "warning", 3, DISCOVERY_MODE,
    "Write `inclusion: automatic` for key properties: without them a target cannot update rows.",
)  # fmt: skip
def keys_are_automatic(trials: Trials) -> Iterator[Violation]:
    """Key properties cannot be deselected: their ``inclusion`` is ``automatic``."""
    for entry in entries(catalog_of(trials)):
        if not metadata_of(entry) and not has_inclusion(entry):
            continue
        for name in key_properties_of(entry):
            inclusion = inclusion_of(entry, name)
            if inclusion != "automatic" and name in properties_of(entry):
                yield Violation(f"{name} is {inclusion or 'undeclared'}", name_of(entry))


@check(
    "replication-key-is-automatic", "discovery", "warning", 3, DISCOVERY_MODE,
    "Write `inclusion: automatic` for the replication key: without it in the records, no bookmark can advance.",
)  # fmt: skip
def replication_key_is_automatic(trials: Trials) -> Iterator[Violation]:
    """A replication key cannot be deselected: its ``inclusion`` is ``automatic``."""
    judged = 0
    for entry in entries(catalog_of(trials)):
        key = replication_key_of(entry)
        if key not in properties_of(entry) or not (metadata_of(entry) or has_inclusion(entry)):
            continue
        judged += 1
        inclusion = inclusion_of(entry, key)
        if inclusion != "automatic":
            yield Violation(f"{key} is {inclusion or 'undeclared'}", name_of(entry))
    if not judged:
        raise Skip("no stream declares both a replication key and inclusions")


@check(
    "keys-are-one-story", "discovery", "warning", 2, DISCOVERY_MODE,
    "Write the same keys in the entry's `key_properties` and in its metadata.",
)  # fmt: skip
def keys_are_one_story(trials: Trials) -> Iterator[Violation]:
    """The entry's ``key_properties`` and the metadata's ``table-key-properties`` are the same."""
    for entry in entries(catalog_of(trials)):
        keys, older = metadata_of(entry).get((), {}).get("table-key-properties"), entry.get("key_properties")
        if (
            isinstance(keys, list)
            and isinstance(older, list)
            and older
            and sorted(map(str, keys)) != sorted(map(str, older))
        ):
            yield Violation("they differ", name_of(entry))


@check(
    "replication-is-valid", "discovery", "error", 6, DISCOVERY_MODE,
    "Write FULL_TABLE, INCREMENTAL or LOG_BASED. For INCREMENTAL, name a property of the schema as the key.",
)  # fmt: skip
def replication_is_valid(trials: Trials) -> Iterator[Violation]:
    """Replication methods are Singer's, and replication keys are properties of the schema."""
    for entry in entries(catalog_of(trials)):
        root, schema = metadata_of(entry).get((), {}), properties_of(entry)
        forced = root.get("forced-replication-method")
        method = forced or entry.get("replication_method")
        if isinstance(method, dict):  # early taps wrote {"replication-method": …}
            method = method.get("replication-method")
        if method is not None and method not in _METHODS:
            yield Violation(f"the replication method is not one of {', '.join(_METHODS)}", name_of(entry))
        valid, key = root.get("valid-replication-keys"), entry.get("replication_key") or root.get("replication-key")
        keys = [*(valid if isinstance(valid, list) else ()), *([key] if key else ())]
        missing = [str(name) for name in dict.fromkeys(map(str, keys)) if name not in schema]
        if missing and method != "LOG_BASED":
            yield Violation(f"the schema has no {_some(missing)}, the replication key", name_of(entry))
        if method == "INCREMENTAL" and not keys:
            yield Violation("INCREMENTAL without a replication key", name_of(entry))


@check(
    "replication-is-said", "discovery", "advice", 1, DISCOVERY_MODE,
    "Write `forced-replication-method`, or `valid-replication-keys` where users can choose.",
)  # fmt: skip
def replication_is_declared(trials: Trials) -> Iterator[Violation]:
    """The catalog declares how each stream is replicated, or the available choices."""
    for entry in entries(catalog_of(trials)):
        root = metadata_of(entry).get((), {})
        names = ("forced-replication-method", "valid-replication-keys", "replication-method")
        if not any(root.get(key) for key in names) and not entry.get("replication_method"):
            yield Violation("no replication is declared", name_of(entry))


@check(
    "discovery-selects-nothing", "discovery", "advice", 1, DISCOVERY_MODE,
    "Write `selected-by-default`: `selected` belongs to the user.",
)  # fmt: skip
def discovery_selects_nothing(trials: Trials) -> Iterator[Violation]:
    """Discovery does not set ``selected``."""
    document = catalog_of(trials)
    if not any(metadata_of(entry) for entry in entries(document)):
        raise Skip("there is no metadata")
    for entry in entries(document):
        if any("selected" in metadata for metadata in metadata_of(entry).values()):
            yield Violation("its metadata has `selected`", name_of(entry))


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
