"""Rules of discovery: ``--discover`` writes a valid catalog, and the same one each time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from balog.errors import MissingExtraError
from balog.registry.schema import InvalidSchemaError
from balog.verify.catalogs import Document, entries, name_of
from balog.verify.rules.registration import DISCOVERY_MODE, PRACTICE, Violation, check
from balog.verify.trials import Skip, Trials
from balog.verify.validators import validator_for

__all__ = ["catalog_of"]


def catalog_of(trials: Trials) -> Document:
    """Return the discovered catalog, or skip the rule without one."""
    document = trials.discovered.document
    if document is None:
        raise Skip("no catalog was discovered")
    return document


@check(
    "discovery-succeeds", "discovery", "error", 10, DISCOVERY_MODE,
    "On --discover, write the catalog to stdout as one JSON object and end with exit code 0.",
)  # fmt: skip
def discovery_succeeds(trials: Trials) -> Iterator[Violation]:
    """``--discover`` ends with exit code 0 and writes a catalog."""
    if trials.discovery.result.code or trials.discovery.result.stopped:
        yield Violation(trials.discovery.outcome)
    elif trials.discovered.document is None:
        yield Violation(trials.discovered.fault)


@check(
    "discovery-writes-only-the-catalog", "discovery", "error", 5, DISCOVERY_MODE,
    "Write everything else to stderr, so that `tap --discover > catalog.json` produces a valid file.",
)  # fmt: skip
def discovery_writes_only_the_catalog(trials: Trials) -> Iterator[Violation]:
    """``--discover`` writes only the catalog to stdout."""
    catalog_of(trials)
    before, after = trials.discovered.noise
    if before or after:
        yield Violation(f"{before} lines before the catalog, and {after} after it")


@check(
    "discovery-is-repeatable", "discovery", "warning", 3, PRACTICE,
    "Use a stable order of streams and properties, and no values that depend on the time.",
)  # fmt: skip
def discovery_is_repeatable(trials: Trials) -> Iterator[Violation]:
    """Two discoveries return the same catalog."""
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


@check(
    "catalog-is-valid", "discovery", "error", 10, DISCOVERY_MODE,
    "Write `tap_stream_id`, `stream`, `schema` (an object) and `metadata` (a list) for each stream.",
)  # fmt: skip
def catalog_is_valid(trials: Trials) -> Iterator[Violation]:
    """Each stream of the catalog has a unique id, a name, a schema and a list of metadata."""
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


@check(
    "schemas-are-json-schema", "discovery", "error", 8, DISCOVERY_MODE,
    "Write schemas that a JSON Schema validator accepts: an object with properties and resolved references.",
)  # fmt: skip
def schemas_are_json_schema(trials: Trials) -> Iterator[Violation]:
    """Each schema is a JSON Schema of an object, with its references resolved."""
    for entry in entries(catalog_of(trials)):
        schema = entry.get("schema")
        if not isinstance(schema, dict):
            continue
        try:
            validator_for(schema)
        except InvalidSchemaError as error:
            yield Violation(str(error), name_of(entry))
            continue
        except MissingExtraError as error:
            raise Skip(str(error)) from None
        kinds = schema.get("type")
        if "object" not in (kinds if isinstance(kinds, list) else [kinds]):
            yield Violation("its type is not object", name_of(entry))
        elif not isinstance(schema.get("properties"), dict):
            yield Violation("it has no properties", name_of(entry))
