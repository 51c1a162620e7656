"""Write the JSON Schema of a config struct, as stored in ``schemas/config``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from balog.common.config.tagged_config import union_of

_MOST_EXAMPLES = 3
_NOTHING = object()

_Definitions = dict[str, dict[str, Any]]


def write_schema(type: type[msgspec.Struct], id: str, title: str) -> bytes:
    """Return the JSON Schema of a config struct, as stored in ``schemas/config``.

    A struct with the class attribute ``examples``, a tuple of plain values, gives them to its schema, and their parts
    to the fields. A field that is newer than 0.1.0 has ``extra_json_schema={"x-since": VERSION}`` in its ``Meta``.
    """
    schema, structs = _schema(type)
    extend = getattr(type, "extend_schema", None)  # for the parts of a config that other structs decode
    if extend is not None:
        structs += [one for added in extend(schema["$defs"]) for one in _structs(msgspec.inspect.type_info(added))]
    for struct in structs:
        for example in getattr(struct, "examples", ()):
            schema["$defs"][struct.__name__].setdefault("examples", []).append(example)
            _give_examples(example, {"$ref": f"#/$defs/{struct.__name__}"}, schema["$defs"])
    tag = type.__struct_config__.tag_field
    top = schema["$defs"][type.__name__]
    if type.__struct_config__.forbid_unknown_fields:
        top["properties"]["$schema"] = {"type": "string", "description": "The schema of this file, for editors."}
    required = top.get("required", [])
    if tag in required:
        required.remove(tag)  # the file need not declare its own type
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": id, "title": title}
    return msgspec.json.format(msgspec.json.encode(head | schema), indent=2) + b"\n"


def _schema(type: type[msgspec.Struct]) -> tuple[dict[str, Any], list[Any]]:
    """Return the schema of a struct, and all structs in it; a field of a tagged config takes every struct of it."""
    kinds: list[Any] = []

    def note(kind: Any) -> dict[str, Any]:
        kinds.append(kind)
        return {"type": "object"}

    plain = msgspec.json.schema(type, schema_hook=note)
    unions = [union_of(kind) for kind in kinds]
    structs = {one.__name__: one for root in [type, *unions] for one in _structs(msgspec.inspect.type_info(root))}
    if not kinds:
        return plain, list(structs.values())
    chosen = dict(zip(kinds, msgspec.json.schema_components(unions)[0]))
    found, definitions = msgspec.json.schema_components([*unions, type], schema_hook=chosen.__getitem__)
    own = {type.__name__: definitions.pop(type.__name__)}
    return {**found[-1], "$defs": own | definitions}, list(structs.values())


def _structs(info: Any) -> Iterator[Any]:
    """Yield the structs in a type of ``msgspec.inspect``."""
    if isinstance(info, msgspec.inspect.StructType):
        yield info.cls
    parts = info if isinstance(info, tuple) else ()
    if isinstance(info, (msgspec.inspect.Type, msgspec.inspect.Field)):
        parts = tuple(getattr(info, name) for name in info.__struct_fields__)
    for part in parts:
        yield from _structs(part)


def _give_examples(value: Any, schema: dict[str, Any], definitions: _Definitions) -> None:
    """Add the parts of an example to the fields that they are values of. A boolean or a word of a list needs none."""
    for part in _parts(schema, definitions):
        tag = part.get("properties", {}).get("type", {}).get("enum")
        if isinstance(value, list) and part.get("type") == "array":
            for each in value:
                _give_examples(each, part.get("items", {}), definitions)
        elif (
            isinstance(value, dict) and "properties" not in part and isinstance(part.get("additionalProperties"), dict)
        ):
            for each in value.values():
                _give_examples(each, part["additionalProperties"], definitions)
        elif isinstance(value, dict) and value.keys() <= part.get("properties", {}).keys():
            if tag is not None and value.get("type", tag[0]) not in tag:
                continue
            for name, each in value.items():
                field = part["properties"][name]
                known = field.get("examples", [])
                is_known = each in known or each == field.get("default", _NOTHING)
                if not is_known and len(known) < _MOST_EXAMPLES and not _is_choice(field, definitions):
                    field["examples"] = [*known, each]
                _give_examples(each, field, definitions)


def _parts(schema: dict[str, Any], definitions: _Definitions) -> Iterator[dict[str, Any]]:
    """Yield the alternatives of a schema, without references."""
    if "$ref" in schema:
        yield from _parts(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    elif "anyOf" in schema and "properties" not in schema:
        for part in schema["anyOf"]:
            yield from _parts(part, definitions)
    else:
        yield schema


def _is_choice(schema: dict[str, Any], definitions: _Definitions) -> bool:
    return all("enum" in part or part.get("type") in ("boolean", "null") for part in _parts(schema, definitions))
