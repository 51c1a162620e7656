"""Write the JSON Schema of a config struct, as stored in ``schemas/config``."""

from __future__ import annotations

from typing import Any

import msgspec

from balog.tagged_config import union_of


def write_schema(type: type[msgspec.Struct], id: str, title: str) -> bytes:
    """Return the JSON Schema of a config struct, as stored in ``schemas/config``."""
    schema = _schema(type)
    extend = getattr(type, "extend_schema", None)  # for the parts of a config that other structs decode
    if extend is not None:
        extend(schema["$defs"])
    tag = type.__struct_config__.tag_field
    top = schema["$defs"][type.__name__]
    if type.__struct_config__.forbid_unknown_fields:
        top["properties"]["$schema"] = {"type": "string", "description": "The schema of this file, for editors."}
    required = top.get("required", [])
    if tag in required:
        required.remove(tag)  # the file need not declare its own type
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": id, "title": title}
    return msgspec.json.format(msgspec.json.encode(head | schema), indent=2) + b"\n"


def _schema(type: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the schema of a struct; a field of a tagged config takes every struct of its registry."""
    kinds: list[Any] = []

    def note(kind: Any) -> dict[str, Any]:
        kinds.append(kind)
        return {"type": "object"}

    plain = msgspec.json.schema(type, schema_hook=note)
    if not kinds:
        return plain
    unions = [union_of(kind) for kind in kinds]
    chosen = dict(zip(kinds, msgspec.json.schema_components(unions)[0]))
    found, definitions = msgspec.json.schema_components([*unions, type], schema_hook=chosen.__getitem__)
    own = {type.__name__: definitions.pop(type.__name__)}
    return {**found[-1], "$defs": own | definitions}
