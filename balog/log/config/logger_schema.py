"""The parts of the JSON Schema of a logger's config that other structs decode."""

from __future__ import annotations

from typing import Any

import msgspec

_NAMES = ("DEBUG", "INFO", "WARNING", "WARN", "ERROR", "EXCEPTION", "CRITICAL", "FATAL", "OFF")

LEVEL: dict[str, Any] = {
    "description": "DEBUG, INFO, WARNING, ERROR, CRITICAL or OFF, in any case.",
    "type": "string",
    "pattern": "^({})$".format("|".join("".join(f"[{char}{char.lower()}]" for char in name) for name in _NAMES)),
}

OUTPUT: dict[str, Any] = {
    "description": "The name of an output, or its URL.",
    "type": "string",
    "pattern": r"^(singer|stderr|logging|console|[A-Za-z][A-Za-z0-9+._-]*:[^?][\s\S]*)$",
}


def extend(definitions: dict[str, Any]) -> list[Any]:
    """Complete the definitions of ``LoggerConfig`` and ``OutputConfig`` in place. Return the types of added parts."""
    from balog.common.config.tagged_config import union_of
    from balog.sinks.base import AnySinkConfig

    added = [union_of(AnySinkConfig)]
    (sink,), further = msgspec.json.schema_components(added)
    definitions.update(further)
    whole, output = definitions["LoggerConfig"]["properties"], definitions["OutputConfig"]["properties"]
    whole["levels"]["additionalProperties"] = LEVEL
    whole["levels"]["propertyNames"] = {"minLength": 1, "maxLength": 1000}
    for properties in (whole, output):
        properties["level"]["anyOf"] = [LEVEL, {"type": "null"}]
    output["to"] = {"anyOf": [OUTPUT, sink]}
    outputs = whole["output"]["anyOf"]
    outputs[0] = OUTPUT
    outputs[1]["items"]["anyOf"][0] = OUTPUT
    return added
