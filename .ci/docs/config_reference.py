"""Pages of the configs, from their JSON Schemas: each field with its type, default, limits, unit and meaning."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
    r"\b(seconds|bytes|events|days|hours|minutes|requests|messages|records|lines|files|rows)\b", re.IGNORECASE
)
NUMBERS = ("integer", "number")

Schema = dict[str, Any]


def pages(root: Path) -> Iterator[tuple[str, str]]:
    """Yield the path and the Markdown of each page."""
    owners: dict[str, tuple[str, Schema]] = {}
    rows = []
    for name, reader in SCHEMAS.items():
        schema = json.loads((root / "schemas/config" / f"{name}.json").read_bytes())
        rows.append((f"[{tables.text(schema['title'])}]({name}.md)", tables.code(reader), tables.code(schema["$id"])))
        yield f"{FOLDER}/{name}.md", page(name, reader, schema, owners)
    parts = (
        "# Configs, field by field",
        "For everyone who writes a config. Each page lists every field of one config.",
        "The pages come from the JSON Schemas that `balog check --schema` prints. [Config files](../configs.md) shows"
        " how to write one. All fields are there since version 0.1.0.",
        tables.table(("config", "read by", "`$id` of its schema"), rows),
    )
    yield f"{FOLDER}/index.md", "\n\n".join(parts) + "\n"


def page(name: str, reader: str, schema: Schema, owners: dict[str, tuple[str, Schema]]) -> str:
    """Return a page. A part that an earlier page describes is a link to it; ``owners`` has those, and gets new ones."""
    definitions: dict[str, Schema] = schema.get("$defs", {})
    for key, definition in definitions.items():
        owners.setdefault(key, (name, definition))
    links = {}
    for key, definition in definitions.items():
        where = "" if is_here(name, key, definition, owners) else f"{owners[key][0]}.md"
        links[key] = f"[{tag_of(definition) or key}]({where}#{key.lower()})"
    parts = [
        f"# {schema['title']}",
        f"For everyone who writes the config that `{reader}` reads: each field with its type, default and limits.",
        "A field with a default is optional; `–` is no value.",
    ]
    main = schema.get("$ref", "").rpartition("/")[2]
    for key in [main, *sorted(definitions.keys() - {main})] if main else []:
        if is_here(name, key, definitions[key], owners):
            parts += section(key, definitions, links)
    return "\n\n".join(parts) + "\n"


def is_here(name: str, key: str, definition: Schema, owners: dict[str, tuple[str, Schema]]) -> bool:
    return owners[key][0] == name or owners[key][1] != definition


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
    required = definition.get("required", [])
    properties = definition.get("properties", {})
    if properties:
        heads = ("field", "type", "default", "limits", "unit", "meaning")
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
    unit = UNITS.search(meaning) if any(each.get("type") in NUMBERS for each in parts_of(schema)) else None
    return (
        tables.code(name),
        kind_of(schema, links),
        default,
        "; ".join(filter(None, map(limits, parts_of(schema)))),
        unit[1].lower() if unit else "",
        tables.text(meaning),
    )


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
