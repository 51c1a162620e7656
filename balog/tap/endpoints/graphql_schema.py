"""Schemas of GraphQL types, read by introspection (https://spec.graphql.org/October2021/#sec-Introspection)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from balog.tap.endpoints.graphql import body_of
from balog.tap.errors import SchemaError
from balog.tap.schema import SchemaSource

_OF_TYPE = "kind name"
for _ in range(7):  # a list of non-null lists of non-null items, and one more
    _OF_TYPE = f"kind name ofType {{ {_OF_TYPE} }}"
_QUERY = f"""query Introspection($name: String!) {{
  __type(name: $name) {{
    kind name fields {{ name args {{ defaultValue type {{ kind }} }} type {{ {_OF_TYPE} }} }}
  }}
}}"""

_SCALARS: dict[str, dict[str, Any]] = {
    "Boolean": {"type": "boolean"},
    "Float": {"type": "number"},
    "ID": {"type": "string"},
    "Int": {"type": "integer"},
    "String": {"type": "string"},
    "BigInt": {"type": "integer"},
    "Date": {"type": "string", "format": "date"},
    "DateTime": {"type": "string", "format": "date-time"},
    "JSON": {},
    "JSONObject": {"type": "object"},
    "Long": {"type": "integer"},
    "Time": {"type": "string", "format": "time"},
    "Timestamp": {"type": "string", "format": "date-time"},
}


def graphql_type(
    name: str, *, depth: int = 1, scalars: Mapping[str, Mapping[str, Any]] | None = None, path: str = "graphql"
) -> SchemaSource:
    """Return a source with the schema of a GraphQL type.

    Deprecated fields and fields with required arguments are left out, as are unions and objects below ``depth``.

    Args:
        name: the type, an object or an interface, such as ``Issue``.
        depth: how many levels of objects inside the record have properties; 0 has only scalars.
        scalars: the JSON Schema of the API's own scalars; other unknown ones are strings.
        path: the path of the endpoint, below the client's base URL.
    """

    def source(client: Any, stream: str) -> dict[str, Any]:
        reader = _TypeReader(client(), path, {**_SCALARS, **(scalars or {})})
        object_type = reader.read(name)
        if object_type is None:
            raise SchemaError(f"the source has no object type {name!r}", f"schema of {stream}")
        return reader.object_of(object_type, depth)

    return source


class _TypeReader:
    """Reads types by introspection, each once."""

    def __init__(self, client: Any, path: str, scalars: Mapping[str, Mapping[str, Any]]) -> None:
        self._client, self._path, self._scalars = client, path, scalars
        self._types: dict[str, dict[str, Any] | None] = {}

    def read(self, name: str) -> dict[str, Any] | None:
        """Return a type that has fields; None if there is none of this name."""
        if name not in self._types:
            document = {"query": _QUERY, "variables": {"name": name}}
            answer = self._client.request("POST", self._path, json=document, is_repeatable=True, allow=(400, 422))
            type_ = body_of(answer)["data"].get("__type")
            self._types[name] = type_ if isinstance(type_, dict) and isinstance(type_.get("fields"), list) else None
        return self._types[name]

    def object_of(self, type: dict[str, Any], depth: int) -> dict[str, Any]:
        """Return the schema of an object type."""
        properties = {}
        for field in type["fields"]:
            if any(arg["type"]["kind"] == "NON_NULL" and arg["defaultValue"] is None for arg in field["args"]):
                continue
            schema = self._of(field["type"], depth, is_nullable=True)
            if schema is not None:
                properties[field["name"]] = schema
        return {"type": "object", "properties": properties}

    def _of(self, type: dict[str, Any], depth: int, *, is_nullable: bool) -> dict[str, Any] | None:
        """Return the schema of a type; None if it is left out."""
        kind, name = type["kind"], type["name"]
        schema: dict[str, Any] | None = None
        if kind == "NON_NULL":
            return self._of(type["ofType"], depth, is_nullable=False)
        if kind == "LIST":
            items = self._of(type["ofType"], depth, is_nullable=True)
            schema = None if items is None else {"type": "array", "items": items}
        elif kind in ("OBJECT", "INTERFACE") and depth > 0:
            object_type = self.read(name)
            schema = self.object_of(object_type, depth - 1) if object_type is not None else None
            schema = schema if schema and schema["properties"] else None
        elif kind == "ENUM":
            schema = {"type": "string"}
        elif kind == "SCALAR":
            schema = dict(self._scalars.get(name, {"type": "string"}))
        if schema is not None and is_nullable and isinstance(schema.get("type"), str):
            schema["type"] = ["null", schema["type"]]
        return schema
