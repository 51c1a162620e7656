"""Renders all types as one self-contained HTML page: fields, versions and changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from importlib import resources
from typing import Any, NamedTuple

import msgspec

from balog.errors import BalogError
from balog.registry.json_schema import decode_schema
from balog.registry.registry import Registry
from balog.registry.schema import Schema
from balog.registry.subschemas import resolve, type_of

_DEEPEST = 12
_MOST_FIELDS = 1000
_LONGEST = 400
_MOST_CHANGES = 20


class Field(NamedTuple):
    """A row of a type's table: the path in the payload, the type, and whether the field is required."""

    path: str
    kind: str
    is_required: bool
    rules: str
    description: str


def render(registry: Registry, title: str = "Types of events") -> str:
    """Return the page as HTML.

    Raises:
        StorageError: the registry can't be read.
    """
    types = registry.types()
    parts = [_section(registry, type) for type in types]
    links = "".join(f'<li><a href="#{escape(type)}">{escape(type)}</a></li>' for type in types)
    count = f"{len(types)} type{'s' * (len(types) != 1)}"
    style = resources.files("balog.registry").joinpath("page.css").read_text(encoding="utf-8")
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{_text(title)}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>\n{style}</style></head>\n<body>\n"
        f'<header><h1>{_text(title)}</h1><p class="note">{count}</p><nav aria-label="Types"><ul>{links}</ul></nav>'
        "</header>\n<main>\n" + "\n".join(parts) + "\n</main>\n</body></html>\n"
    )


def list_fields(document: Mapping[str, Any]) -> list[Field]:
    """Return the fields of a schema's payloads, references resolved, nested fields after their parent."""
    found: list[Field] = []
    for field in _walk(document, document, "", 0, ()):
        found.append(field)
        if len(found) == _MOST_FIELDS:
            break
    return found


def _section(registry: Registry, type: str) -> str:
    versions = registry.versions(type)
    newest = registry.get(type)
    document, problem = _document(newest)
    description = str(document.get("description", "")) if document else ""
    body = [f'<section id="{escape(type)}"><h2>{escape(type)} <small>{escape(newest.version)}</small></h2>']
    if description:
        body.append(f"<p>{_text(description)}</p>")
    if problem:
        body.append(f'<p class="bad">{_text(problem)}</p>')
    if document:
        body += [_table(list_fields(document)), _example(document)]
    language = "Protobuf" if newest.form == "protobuf" else "JSON Schema"
    source = newest.source.decode("utf-8", "replace")
    body.append(f"<details><summary>{language}, as it was registered</summary><pre>{escape(source)}</pre></details>")
    body.append(_history(registry, type, versions))
    return "\n".join(body) + "</section>"


def _document(schema: Schema) -> tuple[dict[str, Any], str]:
    """Return the schema as JSON Schema, or the reason why there is none."""
    try:
        if schema.form == "protobuf":
            from balog.registry.protobuf import compile_proto

            return dict(compile_proto(schema.source, schema.message).json_schema()), ""
        return decode_schema(schema.source), ""
    except BalogError as error:
        return {}, str(error)


def _walk(node: Any, document: Any, path: str, depth: int, above: tuple[int, ...]) -> Iterator[Field]:
    node = _dereferenced(node, document)
    if not isinstance(node, Mapping) or id(node) in above or depth > _DEEPEST:
        return
    above = (*above, id(node))
    for part in _parts(node):
        yield from _walk(part, document, path, depth + 1, above)
    required = node.get("required")
    required = required if isinstance(required, list) else []
    properties = node.get("properties")
    for name, inner in properties.items() if isinstance(properties, dict) else ():
        below = f"{path}.{name}" if path else name
        yield _field(below, inner, document, name in required)
        yield from _walk(inner, document, below, depth + 1, above)
    others = _dereferenced(node.get("additionalProperties"), document)
    if isinstance(others, Mapping) and others:
        below = f"{path}.*" if path else "*"
        yield _field(below, others, document, False)
        yield from _walk(others, document, below, depth + 1, above)
    items = _dereferenced(node.get("items"), document)
    if isinstance(items, Mapping):
        below = f"{path}[]"
        yield from _walk(items, document, below, depth + 1, above)


def _parts(node: Mapping[str, Any]) -> Iterator[Any]:
    for name in ("allOf", "anyOf", "oneOf"):
        parts = node.get(name)
        yield from parts if isinstance(parts, list) else ()


def _dereferenced(node: Any, document: Any) -> Any:
    for _ in range(_DEEPEST):
        if not isinstance(node, dict) or "$ref" not in node:
            break
        target = resolve(document, node["$ref"])
        if not isinstance(target, dict):
            break
        rest = {name: value for name, value in node.items() if name != "$ref"}
        node = {**target, **rest} if rest else target
    return node


def _field(path: str, inner: Any, document: Any, is_required: bool) -> Field:
    node = _dereferenced(inner, document)
    if not isinstance(node, Mapping):
        return Field(path, "nothing" if node is False else "anything", is_required, "", "")
    rules = [_rule(name, node[name]) for name in _RULES if name in node]
    return Field(path, _kind(node, document), is_required, "; ".join(rules), str(node.get("description", "")))


_RULES = {
    "format": "{}",
    "enum": "one of {}",
    "const": "{}",
    "pattern": "matches {}",
    "minimum": "≥ {}",
    "exclusiveMinimum": "> {}",
    "maximum": "≤ {}",
    "exclusiveMaximum": "< {}",
    "multipleOf": "multiple of {}",
    "minLength": "≥ {} characters",
    "maxLength": "≤ {} characters",
    "minItems": "≥ {} items",
    "maxItems": "≤ {} items",
    "uniqueItems": "no item twice: {}",
    "minProperties": "≥ {} members",
    "maxProperties": "≤ {} members",
    "default": "default {}",
}


def _rule(name: str, value: Any) -> str:
    if name == "enum" and isinstance(value, list):
        return "one of " + ", ".join(_json(item) for item in value)
    return _RULES[name].format(value if name in ("format", "pattern") else _json(value))


def _kind(node: Mapping[str, Any], document: Any, depth: int = 0) -> str:
    names = node.get("type")
    kinds = [names] if isinstance(names, str) else [str(name) for name in names] if isinstance(names, list) else []
    if not kinds:
        values = node["enum"] if isinstance(node.get("enum"), list) else [node["const"]] if "const" in node else []
        kinds = list(dict.fromkeys(map(type_of, values)))
    if not kinds and depth < _DEEPEST:
        parts = [_dereferenced(part, document) for part in _parts(node)]
        kinds = list(dict.fromkeys(_kind(part, document, depth + 1) for part in parts if isinstance(part, Mapping)))
    if not kinds:
        kinds = ["object"] if "properties" in node else ["anything"]
    items = _dereferenced(node.get("items"), document)
    if "array" in kinds and isinstance(items, Mapping) and depth < _DEEPEST:
        kinds[kinds.index("array")] = f"array of {_kind(items, document, depth + 1)}"
    return " or ".join(kinds)


def _example(document: Mapping[str, Any]) -> str:
    examples = document.get("examples")
    if not isinstance(examples, list) or not examples:
        return ""
    shown = msgspec.json.format(msgspec.json.encode(examples[0]), indent=2).decode()
    return f"<details open><summary>An example</summary><pre>{escape(shown)}</pre></details>"


def _table(fields: list[Field]) -> str:
    if not fields:
        return '<p class="note">The schema describes no fields.</p>'
    rows = "\n".join(
        f'<tr><th scope="row"><code>{_text(field.path)}</code></th><td>{_text(field.kind)}</td>'
        f"<td>{'yes' if field.is_required else ''}</td><td>{_text(field.rules)}</td>"
        f"<td>{_text(field.description)}</td></tr>"
        for field in fields
    )
    header = "".join(f'<th scope="col">{head}</th>' for head in ("Field", "Type", "Required", "Rules", "Description"))
    return (
        f'<div class="wide" role="region" aria-label="Fields" tabindex="0"><table><thead><tr>{header}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _history(registry: Registry, type: str, versions: list[str]) -> str:
    if len(versions) == 1:
        return ""
    items = []
    for before, version in zip([None, *versions], versions):
        changes = (
            ["first version"] if before is None else _changes(registry.get(type, before), registry.get(type, version))
        )
        more = f"; and {len(changes) - _MOST_CHANGES} more" if len(changes) > _MOST_CHANGES else ""
        items.append(f"<li><b>{escape(version)}</b> {_text('; '.join(changes[:_MOST_CHANGES]) + more, 4000)}</li>")
    return f'<h3>Versions</h3><ul class="versions">{"".join(reversed(items))}</ul>'


def _changes(old: Schema, new: Schema) -> list[str]:
    from balog.registry.comparing import compare

    try:
        findings = compare(old, new, "full").findings
    except BalogError as error:
        return [f"could not be compared: {error}"]
    found = dict.fromkeys(f"{finding.path}: {finding.reason}" for finding in findings if finding.layer != "table")
    return list(found) or ["nothing that affects an event"]


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _text(text: str, longest: int = _LONGEST) -> str:
    shown = "".join(char if char.isprintable() else " " for char in text)
    return escape(shown if len(shown) <= longest else shown[: longest - 1] + "…")
