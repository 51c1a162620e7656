"""Pages of the configs, from their JSON Schemas: each field with its type, default, limits, unit and meaning."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sink_guarantees
import tables

FOLDER = "reference/configs"
SCHEMAS = {
    "broker": "balog broker",
    "run": "balog run",
    "logger": "balog.configure",
    "service": "balog serve",
    "document": "balog config push",
    "monitors": "balog watch",
    "cases": "balog test",
    "patch": "balog replay",
    "tokens": "balog token",
}
UNITS = re.compile(
    r"\b(?:(?:seconds|bytes|events|days|hours|minutes|requests|messages|records|lines|files|rows|properties|characters"
    r"|datagrams|levels|connections|runs|firings|retries)(?: (?:a|per) second)?|sets of tags|share|standard deviations)"
    r"\b",
    re.IGNORECASE,
)
NUMBERS = ("integer", "number")

FIRST_VERSION = "0.1.0"
LONGEST_EXAMPLE = 90  # characters, in a table
LONGEST_LINE = 120
LEGEND = "A field with a default is optional; `–` is no value."

Schema = dict[str, Any]
Places = dict[str, tuple[str, Schema]]
"""A part of a config → the page that describes it, and its schema there."""


def pages(root: Path) -> Iterator[tuple[str, str]]:
    """Yield the path and the Markdown of each page: one for each config, and one for each sink."""
    schemas = {name: json.loads((root / "schemas/config" / f"{name}.json").read_bytes()) for name in SCHEMAS}
    pages_of = {key: f"sinks/{name}" for key, name in sink_parts(schemas["broker"]["$defs"]).items()}
    places: Places = {}
    rows = []
    for name, reader in SCHEMAS.items():
        schema = schemas[name]
        definitions: dict[str, Schema] = schema.get("$defs", {})
        for key, definition in definitions.items():
            places.setdefault(key, (pages_of.get(key, name), definition))
        rows.append((f"[{tables.text(schema['title'])}]({name}.md)", tables.code(reader), tables.code(schema["$id"])))
        yield f"{FOLDER}/{name}.md", page(name, reader, schema, places)
    yield from sink_pages(schemas["broker"]["$defs"], places)
    parts = (
        "# Configs, field by field",
        "For everyone who writes a config. Each page lists every field of one config.",
        "The pages come from the JSON Schemas that `balog check --schema` prints. [Config files](../configs.md) shows"
        f" how to write one. A field without *since* is there since version {FIRST_VERSION}.",
        tables.table(("config", "read by", "`$id` of its schema"), rows),
        "Sinks are in the configs of brokers, sidecars and loggers: [Sinks](sinks/index.md).",
    )
    yield f"{FOLDER}/index.md", "\n\n".join(parts) + "\n"


def page(name: str, reader: str, schema: Schema, places: Places) -> str:
    """Return a page. A part that another page describes is a link to it."""
    definitions: dict[str, Schema] = schema.get("$defs", {})
    links = links_from(name, definitions, places)
    main = schema.get("$ref", "").rpartition("/")[2]
    parts = [
        f"# {schema['title']}",
        f"For everyone who writes the config that `{reader}` reads: each field with its type, default and limits.",
        LEGEND,
    ]
    for key in [main, *sorted(definitions.keys() - {main})] if main else []:
        if is_here(name, key, definitions[key], places):
            parts += section(key, definitions, links)
    return "\n\n".join(parts) + "\n"


def sink_parts(definitions: dict[str, Schema]) -> dict[str, str]:
    """Return the parts of sinks, with the page of each: the sink's, or ``index`` for what several sinks have."""
    found: dict[str, str] = {}
    for key, definition in definitions.items():
        if key.endswith("SinkConfig"):
            for part in parts_below(key, definitions):
                sink = tag_of(definition)
                found[part] = sink if found.get(part, sink) == sink else "index"
    return found


def parts_below(key: str, definitions: dict[str, Schema]) -> set[str]:
    """Return a part of a config and the parts that it refers to."""
    found, left = set(), {key}
    while left:
        found.add(each := left.pop())
        left |= set(re.findall(r'"#/\$defs/(\w+)"', json.dumps(definitions[each]))) - found
    return found


def sink_pages(definitions: dict[str, Schema], places: Places) -> Iterator[tuple[str, str]]:
    """Yield a page for each sink, and one for the parts that several sinks have."""
    on_pages: dict[str, list[str]] = {}
    for key, (place, _) in places.items():
        if place.startswith("sinks/"):
            on_pages.setdefault(place, []).append(key)
    index = on_pages.pop("sinks/index")
    rows = []
    for place, keys in sorted(on_pages.items()):
        name = place.rpartition("/")[2]
        main = next(key for key in keys if tag_of(definitions[key]) == name)
        rows.append((f"[`{name}`]({name}.md)", tables.text(definitions[main].get("description", ""))))
        parts = [
            f"# Sink {name}",
            f"For everyone who configures the sink `{name}`: its guarantee, examples, and each field.",
            sink_guarantees.of_sink(name),
            LEGEND,
        ]
        for key in [main, *sorted(set(keys) - {main})]:
            parts += section(key, definitions, links_from(place, definitions, places))
        yield f"{FOLDER}/{place}.md", "\n\n".join(parts) + "\n"
    parts = [
        "# Sinks, field by field",
        "For everyone who configures a sink. Each sink has a page; the parts that several sinks have are below."
        " [Sinks](../../sinks.md) compares their guarantees.",
        tables.table(("sink", "what it does"), rows),
        LEGEND,
    ]
    for key in sorted(index):
        parts += section(key, definitions, links_from("sinks/index", definitions, places))
    yield f"{FOLDER}/sinks/index.md", "\n\n".join(parts) + "\n"


def links_from(name: str, definitions: dict[str, Schema], places: Places) -> dict[str, str]:
    """Return a link from a page to each part of a config."""
    links = {}
    for key, definition in definitions.items():
        where = ""
        if not is_here(name, key, definition, places):
            where = posixpath.relpath(f"{places[key][0]}.md", posixpath.dirname(name) or ".")
        links[key] = f"[{tag_of(definition) or key}]({where}#{key.lower()})"
    return links


def is_here(name: str, key: str, definition: Schema, places: Places) -> bool:
    return places[key][0] == name or without_examples(places[key][1]) != without_examples(definition)


def without_examples(value: Any) -> Any:
    """Return a part of a schema without the examples, which depend on the config that it is in."""
    if isinstance(value, list):
        return [without_examples(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {key: without_examples(each) for key, each in value.items() if key != "examples"}


def title(key: str, definition: Schema) -> str:
    tag = tag_of(definition)
    return f"{key}: type `{tag}`" if tag else key


def tag_of(definition: Schema) -> str:
    """Return the only value that the field ``type`` has, or nothing."""
    tags = definition.get("properties", {}).get("type", {}).get("enum", [])
    return str(tags[0]) if len(tags) == 1 else ""


def section(key: str, definitions: dict[str, Schema], links: dict[str, str]) -> Iterator[str]:
    definition = definitions[key]
    yield f"## {title(key, definition)} {{ #{key.lower()} }}"
    if description := definition.get("description"):
        yield tables.text(description)
    for example in definition.get("examples", ()):
        yield f"```json\n{json_text(example)}\n```"
    required = definition.get("required", [])
    properties = definition.get("properties", {})
    if properties:
        heads = ("field", "type", "default", "limits", "unit", "example", "since", "meaning")
        yield tables.table(
            heads,
            [
                field(name, each, name in required, links, definitions)
                for name, each in properties.items()
                if name[0] != "$"
            ],
        )
    elif "enum" in definition or "type" in definition or "anyOf" in definition:
        yield f"Type: {kind_of(definition, links)}"


def field(
    name: str, schema: Schema, is_required: bool, links: dict[str, str], definitions: dict[str, Schema]
) -> tuple[str, ...]:
    meaning = described(schema) or described_by(schema, definitions)
    default = "required" if is_required else shown(schema.get("default"))
    each = parts_of(schema)
    return (
        tables.code(name),
        kind_of(schema, links),
        default,
        "; ".join(filter(None, map(limits, each))),
        unit_of(name, meaning) if any(one.get("type") in NUMBERS for one in each) else "",
        example_of([schema, *each]),
        next((str(one["x-since"]) for one in [schema, *each] if "x-since" in one), ""),
        tables.text(meaning),
    )


def unit_of(name: str, meaning: str) -> str:
    """Return the unit of a number: bytes by its name, else the first unit in its description."""
    found = UNITS.search(meaning)
    return "bytes" if "bytes" in name else found[0].lower() if found else ""


def example_of(schemas: list[Schema]) -> str:
    """Return the shortest example of a field; nothing for one that is too long for a table."""
    texts = [json.dumps(each, ensure_ascii=False) for one in schemas for each in one.get("examples", ())]
    text = min(texts, key=len, default="")
    return tables.code(text) if 0 < len(text) <= LONGEST_EXAMPLE else ""


def json_text(example: Any) -> str:
    """Return an example document: in one line if it is short."""
    text = json.dumps(example, ensure_ascii=False)
    return text if len(text) <= LONGEST_LINE else json.dumps(example, ensure_ascii=False, indent=2)


def parts_of(schema: Schema) -> list[Schema]:
    return [each for part in schema["anyOf"] for each in parts_of(part)] if "anyOf" in schema else [schema]


def described(schema: Schema) -> str:
    return " ".join(dict.fromkeys(each["description"] for each in [schema, *parts_of(schema)] if "description" in each))


def described_by(schema: Schema, definitions: dict[str, Schema]) -> str:
    """Return the description of the part that a field without one refers to; for a tag, what it is."""
    for part in parts_of(schema):
        if "$ref" in part:
            return described(definitions[part["$ref"].rpartition("/")[2]])
        if len(part.get("enum", ())) == 1:
            return "The kind of this part of the config."
    return ""


def shown(value: Any) -> str:
    if value is None or value in ([], {}):
        return {"None": "–", "[]": "`[]`", "{}": "`{}`"}[str(value)]
    return tables.code(json.dumps(value, ensure_ascii=False))


def kind_of(schema: Schema, links: dict[str, str]) -> str:
    """Return a type in words, with links to the parts of the config that it names."""
    if "anyOf" in schema:
        return " or ".join(
            dict.fromkeys(kind_of(part, links) for part in schema["anyOf"] if part.get("type") != "null")
        )
    if "$ref" in schema:
        return links[schema["$ref"].rpartition("/")[2]]
    if "enum" in schema:
        return ", ".join(tables.code(json.dumps(each)) for each in schema["enum"])
    if "const" in schema:
        return tables.code(json.dumps(schema["const"]))
    kind = schema.get("type", "any value")
    if kind == "array":
        return f"list of {kind_of(schema.get('items') or {}, links)}"
    if kind == "object":
        values = schema.get("additionalProperties")
        return f"object of {kind_of(values, links)}" if isinstance(values, dict) and values else "object"
    return {"string": "text"}.get(str(kind), str(kind))


def limits(schema: Schema) -> str:
    found = []
    for low, high, unit in (
        ("minimum", "maximum", ""),
        ("minLength", "maxLength", " characters"),
        ("minItems", "maxItems", " items"),
        ("minProperties", "maxProperties", " members"),
    ):
        least, most = schema.get(low), schema.get(high)
        if least is not None or most is not None:
            found.append(between(least, most) + unit)
    if "exclusiveMinimum" in schema:
        found.append(f"> {schema['exclusiveMinimum']:,}")
    if "exclusiveMaximum" in schema:
        found.append(f"< {schema['exclusiveMaximum']:,}")
    if "pattern" in schema:
        found.append(tables.code(schema["pattern"]))
    return ", ".join(found)


def between(least: float | None, most: float | None) -> str:
    if most is None:
        return f"≥ {least:,}"
    return f"≤ {most:,}" if least is None else f"{least:,} to {most:,}"
