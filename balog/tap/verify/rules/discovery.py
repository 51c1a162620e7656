"""Rules of discovery: ``--discover`` writes a valid catalog, with the metadata that user interfaces need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from balog.common.errors import MissingExtraError
from balog.registry.schema import InvalidSchemaError
from balog.tap.json_schema.keywords import is_names
from balog.tap.verify.catalogs import (
    Document,
    entries,
    has_inclusion,
    inclusion_of,
    key_properties_of,
    metadata_of,
    name_of,
    properties_of,
    replication_key_of,
    valid_keys_of,
)
from balog.tap.verify.rules.registration import RuleSource, Violation, check, check_each
from balog.tap.verify.rules.subjects import catalog_entries, catalog_of, first_of
from balog.tap.verify.runs import Skip
from balog.tap.verify.synced_stream import validator_for
from balog.tap.verify.trials import Trials

_METHODS = ("FULL_TABLE", "INCREMENTAL", "LOG_BASED")
_INCLUSIONS = ("available", "automatic", "unsupported")


_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "inclusion": ("one of available, automatic, unsupported", lambda value: value in _INCLUSIONS),
    "selected-by-default": ("true or false", lambda value: isinstance(value, bool)),
    "valid-replication-keys": ("a list of names", is_names),
    "table-key-properties": ("a list of names", is_names),
    "view-key-properties": ("a list of names", is_names),
    "schema-name": ("a text", lambda value: isinstance(value, str)),
    "database-name": ("a text", lambda value: isinstance(value, str)),
    "sql-datatype": ("a text", lambda value: isinstance(value, str)),
    "is-view": ("true or false", lambda value: isinstance(value, bool)),
    "row-count": ("a whole number", lambda value: isinstance(value, int)),
}


@check("discovery", "error", 10, RuleSource.DISCOVERY_MODE)
def discovery_succeeds(trials: Trials) -> Iterator[Violation]:
    """``--discover`` ends with exit code 0 and writes a catalog.

    On --discover, write the catalog to stdout as one JSON object and end with exit code 0.
    """
    if trials.discovery.result.code or trials.discovery.result.stopped:
        yield Violation(trials.discovery.outcome)
    elif trials.discovered.document is None:
        yield Violation(trials.discovered.fault)


@check("discovery", "error", 5, RuleSource.DISCOVERY_MODE)
def discovery_writes_only_the_catalog(trials: Trials) -> Iterator[Violation]:
    """``--discover`` writes only the catalog to stdout.

    Write everything else to stderr, so that `tap --discover > catalog.json` produces a valid file.
    """
    catalog_of(trials)
    before, after = trials.discovered.noise
    if before or after:
        yield Violation(f"{before} lines before the catalog, and {after} after it")


@check("discovery", "warning", 3, RuleSource.PRACTICE)
def discovery_is_repeatable(trials: Trials) -> Iterator[Violation]:
    """Two discoveries return the same catalog.

    Use a stable order of streams and properties, and no values that depend on the time.
    """
    first, second = catalog_of(trials), trials.second_discovery.document
    if second is None:
        yield Violation(f"the second time {trials.second_discovery.fault}")
        return
    if first == second:
        return
    ones, others = ({name_of(entry): entry for entry in entries(each)} for each in (first, second))
    for name in sorted(ones.keys() ^ others.keys()):
        yield Violation("is in only one of two discoveries", name)
    for name in ones.keys() & others.keys():
        if ones[name] != others[name]:
            differing = sorted(
                key for key in {*ones[name], *others[name]} if ones[name].get(key) != others[name].get(key)
            )
            yield Violation(f"another {', '.join(differing)} the second time", name)
    if list(ones) != list(others) and ones == others:
        yield Violation("the second discovery has another order of streams")


@check("discovery", "error", 10, RuleSource.DISCOVERY_MODE)
def catalog_is_valid(trials: Trials) -> Iterator[Violation]:
    """Each stream of the catalog has a unique id, a name, a schema and a list of metadata.

    Write `tap_stream_id`, `stream`, `schema` (an object) and `metadata` (a list) for each stream.
    """
    listed = catalog_of(trials)["streams"]
    if not listed:
        yield Violation("the catalog has no stream")
    for number, entry in enumerate(listed):
        if not isinstance(entry, dict):
            yield Violation(f"streams[{number}] is not an object")
            continue
        name = str(entry.get("tap_stream_id") or entry.get("stream") or f"streams[{number}]")
        for key in ("tap_stream_id", "stream"):
            if not isinstance(entry.get(key), str) or not entry[key]:
                yield Violation(f"has no {key} that is a string", name)
        if not isinstance(entry.get("schema"), dict):
            yield Violation("has no schema that is an object", name)
        if "metadata" in entry and not isinstance(entry["metadata"], list):
            yield Violation("its metadata is not a list", name)
    ids = Counter(entry.get("tap_stream_id") for entry in entries({"streams": listed}))
    for identity, count in ids.items():
        if count > 1 and identity is not None:
            yield Violation(f"there are {count} streams with this tap_stream_id", str(identity))


@check_each(catalog_entries, "discovery", "error", 8, RuleSource.DISCOVERY_MODE)
def schemas_are_json_schema(entry: Document) -> Iterator[str]:
    """Each schema is a JSON Schema of an object, with its references resolved.

    Write schemas that a JSON Schema validator accepts: an object with properties and resolved references.
    """
    schema = entry.get("schema")
    if not isinstance(schema, dict):
        return
    try:
        validator_for(schema)
    except InvalidSchemaError as error:
        yield str(error)
        return
    except MissingExtraError as error:
        raise Skip(str(error)) from None
    kinds = schema.get("type")
    if "object" not in (kinds if isinstance(kinds, list) else [kinds]):
        yield "its type is not object"
    elif not isinstance(schema.get("properties"), dict):
        yield "it has no properties"


@check_each(catalog_entries, "discovery", "warning", 3, RuleSource.DISCOVERY_MODE)
def breadcrumbs_exist(entry: Document) -> Iterator[str]:
    """Each metadata item has a unique breadcrumb that exists in the schema.

    Write metadata only for parts of the schema: [] is the stream, ["properties", NAME] a property.
    """
    listed, seen = entry.get("metadata"), set()
    for number, item in enumerate(listed if isinstance(listed, list) else ()):
        crumb = item.get("breadcrumb") if isinstance(item, dict) else None
        if not isinstance(crumb, list) or not isinstance(item.get("metadata"), dict):
            yield f"metadata[{number}] is not a breadcrumb (list) with metadata (object)"
            continue
        if tuple(map(str, crumb)) in seen:
            yield f"two items have the breadcrumb {'.'.join(map(str, crumb)) or '[]'}"
        seen.add(tuple(map(str, crumb)))
        node = entry.get("schema")
        if not isinstance(node, dict):
            continue  # catalog-is-valid reports it
        for step in crumb:
            node = node.get(step) if isinstance(node, dict) and isinstance(step, str) else None
        if node is None:
            yield f"the breadcrumb {'.'.join(map(str, crumb))} does not exist"


@check_each(catalog_entries, "discovery", "warning", 4, RuleSource.PRACTICE)
def metadata_is_publishable(entry: Document) -> Iterator[str]:
    """Metadata values have the types that user interfaces support.

    Use the metadata values of docs/DISCOVERY_MODE.md: user interfaces show and return no others.
    """
    for crumb, metadata in metadata_of(entry).items():
        where = ".".join(crumb) or "the stream"
        for key, value in metadata.items():
            wanted, fits = _KINDS.get(key, ("a value", lambda value: value is not None))
            if not fits(value):
                yield f"{key} of {where} is not {wanted}"


@check_each(catalog_entries, "discovery", "warning", 4, RuleSource.DISCOVERY_MODE)
def inclusion_is_declared(entry: Document) -> Iterator[str]:
    """Each top-level property has an ``inclusion``.

    Write `inclusion` for each property: available, automatic or unsupported.
    """
    schema = properties_of(entry)
    without = [name for name in schema if inclusion_of(entry, name) is None]
    if without:
        yield f"{len(without)} of {len(schema)} properties have no inclusion: {first_of(without)}"


@check_each(catalog_entries, "discovery", "error", 6, RuleSource.DISCOVERY_MODE)
def keys_exist(entry: Document) -> Iterator[str]:
    """Key properties are properties of the schema.

    In `table-key-properties`, name properties of the schema.
    """
    missing = [name for name in key_properties_of(entry) if name not in properties_of(entry)]
    if missing and isinstance(entry.get("schema"), dict):
        yield f"the schema has no {first_of(missing)}"


@check_each(catalog_entries, "discovery", "warning", 3, RuleSource.DISCOVERY_MODE)
def keys_are_automatic(entry: Document) -> Iterator[str]:
    """Key properties cannot be deselected: their ``inclusion`` is ``automatic``.

    Write `inclusion: automatic` for key properties: without them a target cannot update rows.
    """
    if metadata_of(entry) or has_inclusion(entry):
        yield from _not_automatic(entry, key_properties_of(entry))


def _not_automatic(entry: Document, names: Iterable[str]) -> Iterator[str]:
    for name in names:
        inclusion = inclusion_of(entry, name)
        if inclusion != "automatic" and name in properties_of(entry):
            yield f"{name} is {inclusion or 'undeclared'}"


def _keyed_entries(trials: Trials) -> list[tuple[str, Document]]:
    keyed = [
        (name, entry)
        for name, entry in catalog_entries(trials)
        if replication_key_of(entry) in properties_of(entry) and (metadata_of(entry) or has_inclusion(entry))
    ]
    if not keyed:
        raise Skip("no stream declares both a replication key and inclusions")
    return keyed


@check_each(_keyed_entries, "discovery", "warning", 3, RuleSource.DISCOVERY_MODE)
def replication_key_is_automatic(entry: Document) -> Iterator[str]:
    """A replication key cannot be deselected: its ``inclusion`` is ``automatic``.

    Write `inclusion: automatic` for the replication key: without it in the records, no bookmark can advance.
    """
    return _not_automatic(entry, [replication_key_of(entry)])


@check_each(catalog_entries, "discovery", "warning", 2, RuleSource.DISCOVERY_MODE)
def keys_are_one_story(entry: Document) -> Iterator[str]:
    """The entry's ``key_properties`` and the metadata's ``table-key-properties`` are the same.

    Write the same keys in the entry's `key_properties` and in its metadata.
    """
    keys, older = metadata_of(entry).get((), {}).get("table-key-properties"), entry.get("key_properties")
    if isinstance(keys, list) and isinstance(older, list) and older and {*map(str, keys)} != {*map(str, older)}:
        yield "they differ"


@check_each(catalog_entries, "discovery", "error", 6, RuleSource.DISCOVERY_MODE)
def replication_is_valid(entry: Document) -> Iterator[str]:
    """Replication methods are Singer's, and replication keys are properties of the schema.

    Write FULL_TABLE, INCREMENTAL or LOG_BASED. For INCREMENTAL, name a property of the schema as the key.
    """
    root, schema = metadata_of(entry).get((), {}), properties_of(entry)
    forced = root.get("forced-replication-method")
    method = entry.get("replication_method") if forced is None else forced
    if isinstance(method, dict):  # early taps wrote {"replication-method": …}
        method = method.get("replication-method", method)
    if method is not None and method not in _METHODS:
        yield f"the replication method is not one of {', '.join(_METHODS)}"
    key = entry.get("replication_key") or root.get("replication-key")
    keys = [*valid_keys_of(entry), *([key] if key else ())]
    missing = [str(name) for name in dict.fromkeys(map(str, keys)) if name not in schema]
    if missing and method != "LOG_BASED":
        yield f"the schema has no {first_of(missing)}, the replication key"
    if method == "INCREMENTAL" and not keys:
        yield "INCREMENTAL without a replication key"


@check_each(catalog_entries, "discovery", "advice", 1, RuleSource.DISCOVERY_MODE)
def replication_is_declared(entry: Document) -> Iterator[str]:
    """The catalog declares how each stream is replicated, or the available choices.

    Write `forced-replication-method`, or `valid-replication-keys` where users can choose.
    """
    root = metadata_of(entry).get((), {})
    names = ("forced-replication-method", "valid-replication-keys", "replication-method")
    if not any(root.get(key) for key in names) and not entry.get("replication_method"):
        yield "no replication is declared"


@check("discovery", "advice", 1, RuleSource.DISCOVERY_MODE)
def discovery_selects_nothing(trials: Trials) -> Iterator[Violation]:
    """Discovery does not set ``selected``.

    Write `selected-by-default`: `selected` belongs to the user.
    """
    document = catalog_of(trials)
    if not any(metadata_of(entry) for entry in entries(document)):
        raise Skip("there is no metadata")
    for entry in entries(document):
        if any("selected" in metadata for metadata in metadata_of(entry).values()):
            yield Violation("its metadata has `selected`", name_of(entry))
