"""Streams for the list endpoints of an API, as the document has them.

A stream has the schema of its records, keys, paging, a bookmark and a parent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from balog.tap import credentials
from balog.tap.errors import SchemaError
from balog.tap.projects.documents import ApiDocument
from balog.tap.projects.model import StreamPlan
from balog.tap.projects.source_text import UniqueNames, pascal, snake
from balog.tap.schema.references import flatten, resolve_target

_FIELD = re.compile(r"[A-Za-z_]\w*")
_ITEMS = ("data", "items", "results", "records", "values", "value", "content", "entries", "rows", "objects")
_KEYS = ("id", "uuid", "guid", "uid", "key", "code", "slug", "number")
_CHANGED = re.compile(r"(updated|modified|changed|lastupdated|lastmodified|lastchanged)(at|on|date|time|timestamp)?")
_SINCE = re.compile(r"(updated|modified|changed|lastupdated|lastmodified)?(at|on|date)?"
                    r"(since|after|from|min|gte|start)|since")  # fmt: skip
_CURSORS = re.compile(r"(next|page|paging|pagination)?(cursor|pagetoken|token|after|continuation)|startingafter")
_NEXT = re.compile(r"next(cursor|pagetoken|token|page|after)?|cursor|continuation(token)?|endcursor")
_SIZES = ("limit", "perpage", "pagesize", "size", "maxresults", "count", "top", "maxitems")
_GROUPS = ("meta", "pagination", "paging", "page", "links", "pageinfo")
_VERSIONS = re.compile(r"v?\d+(\.\d+)*|api|rest")
_MAX_SIZE = 1000


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


class EndpointPlanner:
    """Plans streams, one endpoint after another, shorter paths first.

    Args:
        document: the document.
    """

    def __init__(self, document: ApiDocument) -> None:
        self.plans: list[StreamPlan] = []
        self.settings: dict[str, dict[str, Any]] = {}
        self._document = document
        self._names = UniqueNames()
        self._classes = UniqueNames(["RestStream", "Tap", "Any", "Client", *credentials.__all__])
        self._by_path: dict[str, StreamPlan] = {}

    def add(self, path: str, operation: Mapping[str, Any], parameters: Sequence[Mapping[str, Any]]) -> None:
        """Plan the stream of a GET operation, if its response has a list of objects.

        Raises:
            SchemaError: a reference has no target, or the schema of the records is invalid or too large.
        """
        answer = self._answer(operation)
        schema = self._document.mapping(_json_of(answer))
        record_list = self._list_in(schema, path)
        if record_list is None:
            return
        items, node = record_list
        record = record_schema(self._document, node)
        filled, parent, from_parent = self._filled_path(path, record["properties"], parameters)
        segments = [part for part in path.split("/") if part and "{" not in part]
        words = [part for part in segments if not _VERSIONS.fullmatch(part.lower())] or segments
        name = self._names.take(snake(" ".join(words[-1:]), "stream"))
        plan = StreamPlan(
            name,
            self._classes.take(pascal(name, "Stream")),
            filled,
            record,
            items,
            keys=_keys(name, record["properties"]),
            parent=parent,
            from_parent=from_parent,
            **self._query(record["properties"], schema, answer, parameters),
        )
        self._by_path[path] = plan
        self.plans.append(plan)

    def _answer(self, operation: Mapping[str, Any]) -> dict[str, Any]:
        answers = operation.get("responses")
        for status in ("200", "2XX", "206", "default"):
            if isinstance(answers, Mapping) and status in answers:
                return self._document.mapping(answers[status])
        return {}

    def _list_in(self, schema: Mapping[str, Any], path: str) -> tuple[str, Any] | None:
        """Return the path of the records in the response, and their schema."""
        if schema.get("type") == "array" or (isinstance(schema.get("items"), Mapping) and "properties" not in schema):
            return ("", schema["items"]) if self._is_object(schema.get("items")) else None
        last = _plain(path.rstrip("/").rpartition("/")[2])
        lists = {}
        for name, value in self._properties(schema).items():
            inner = self._document.mapping(value)
            if self._is_object(inner.get("items")) and _FIELD.fullmatch(name):
                lists[name] = inner["items"]
        chosen = next((name for name in lists if _plain(name) == last or name.lower() in _ITEMS), None)
        if chosen is None and len(lists) == 1:
            chosen = next(iter(lists))
        return None if chosen is None else (chosen, lists[chosen])

    def _properties(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        properties: dict[str, Any] = {}
        for part in schema.get("allOf") or ():
            properties |= self._document.mapping(self._document.mapping(part).get("properties") or {})
        own = schema.get("properties")
        return {**properties, **(own if isinstance(own, dict) else {})}

    def _is_object(self, node: Any) -> bool:
        schema = self._document.mapping(node or {})
        return bool(self._properties(schema))

    def _filled_path(
        self, path: str, properties: dict[str, Any], parameters: Sequence[Mapping[str, Any]]
    ) -> tuple[str, StreamPlan | None, dict[str, str]]:
        """Fill the parameters of a path from a parent's records, whose properties are added, or from the config."""
        parts = path.split("/")
        indexes = [index for index, part in enumerate(parts) if "{" in part]
        if any(not parts[index].startswith("{") or parts[index].count("{") > 1 for index in indexes):
            raise SchemaError("a parameter is only a part of a segment of its path")
        above = self._by_path.get("/".join(parts[: indexes[-1]])) if indexes else None
        field = self._field_of(above, parts[indexes[-1]].strip("{}")) if above is not None else None
        if above is not None and above.parent is not None and field is not None:
            raise SchemaError(f"it is below {above.name}, which has a parent itself")
        parent, from_parent = None, {}
        for index in indexes:
            name = parts[index].strip("{}")
            if above is None or field is None or index != indexes[-1]:
                parts[index] = f"{{config.{self._setting(name, parameters)}}}"
                continue
            parent = above
            parts[index] = f"{{{field}}}"
            own = snake(name if _plain(name) not in _KEYS else f"{above.name} {name}", "parent")
            if own not in properties:
                from_parent[own] = field
                properties[own] = dict(above.schema["properties"][field])
        return "/".join(parts), parent, from_parent

    def _field_of(self, parent: StreamPlan, name: str) -> str | None:
        fields = [field for field in parent.schema["properties"] if _FIELD.fullmatch(field)]
        parent_field = next((field for field in fields if _plain(field) == _plain(name)), None)
        if parent_field is None and parent.keys and _FIELD.fullmatch(parent.keys[0]):
            parent_field = parent.keys[0]
        return parent_field

    def _setting(self, name: str, parameters: Sequence[Mapping[str, Any]]) -> str:
        setting = snake(name, "setting")
        if setting not in self.settings:
            given = next((each for each in parameters if snake(str(each.get("name")), "parameter") == setting), {})
            text = given.get("description")
            self.settings[setting] = {
                "type": "string",
                "minLength": 1,
                "description": " ".join(text.split())[:100] if isinstance(text, str) and text.strip() else name[:100],
            }
        return setting

    def _query(
        self,
        properties: Mapping[str, Any],
        schema: Mapping[str, Any],
        answer: Mapping[str, Any],
        given: Sequence[Mapping[str, Any]],
    ) -> dict[str, Any]:
        """Return what a plan has of the query: the bookmark's parameter, those of paging, and those that are needed."""
        queries = {str(each["name"]): each for each in given if each.get("in") == "query" and each.get("name")}
        paging = self._paging(queries, schema, answer)
        params: dict[str, str] = {}
        query: dict[str, Any] = {"paging": paging, "params": params}
        used = set(re.findall(r"param=(\S+)", paging))
        times = [name for name, value in properties.items() if value.get("format") == "date-time"]
        changed = next((name for name in times if _CHANGED.fullmatch(_plain(name))), None)
        free = [  # a first run sends none, so it must not be required
            name
            for name, each in queries.items()
            if _SINCE.fullmatch(_plain(name)) and name not in used and each.get("required") is not True
        ]
        since = min(free, key=lambda name: not self._is_time(queries[name]), default=None)
        if changed is not None and since is not None:
            query |= {"replication_key": changed, "since": since}
            params[since] = "{bookmark}"
        for name, parameter in queries.items():
            if parameter.get("required") is True and name not in used and name not in params:
                params[name] = f"{{config.{self._setting(name, given)}}}"
        return query

    def _is_time(self, parameter: Mapping[str, Any]) -> bool:
        return self._document.mapping(parameter.get("schema") or {}).get("format") in ("date-time", "date")

    def _paging(
        self, queries: Mapping[str, Mapping[str, Any]], schema: Mapping[str, Any], answer: Mapping[str, Any]
    ) -> str:
        by_plain = {_plain(name): name for name in queries if re.fullmatch(r"[^\s=]+", name)}
        size = next((by_plain[name] for name in _SIZES if name in by_plain), None)
        sized = "" if size is None else f" size={self._size(queries[size])} size_param={size}"
        headers = answer.get("headers")
        if isinstance(headers, Mapping) and any(name.lower() == "link" for name in headers):
            return "link"
        bodies = self._texts_in(schema)
        cursor = next((by_plain[name] for name in by_plain if _CURSORS.fullmatch(name)), None)
        next_path = next((path for path in bodies if _NEXT.fullmatch(_plain(path.rpartition(".")[2]))), None)
        if cursor is not None and next_path is not None:
            return f"cursor:{next_path} param={cursor}{sized}"
        if next_path is not None and bodies[next_path] in ("uri", "url", "uri-reference"):
            return f"url:{next_path}"
        offset = next((by_plain[name] for name in ("offset", "skip", "start", "startat") if name in by_plain), None)
        if offset is not None and size is not None:
            return f"offset param={offset}{sized}"
        page = next((by_plain[name] for name in ("page", "pagenumber", "pageno", "p") if name in by_plain), None)
        if page is None:
            return ""
        inner = self._document.mapping(queries[page].get("schema") or {})
        first = 0 if inner.get("default", inner.get("minimum")) == 0 else 1
        return f"page param={page} first={first}{sized}"

    def _size(self, parameter: Mapping[str, Any]) -> int:
        inner = self._document.mapping(parameter.get("schema") or {})
        for name in ("maximum", "default"):
            if isinstance(inner.get(name), int) and 0 < inner[name] <= _MAX_SIZE:
                return int(inner[name])
        return 100

    def _texts_in(self, schema: Mapping[str, Any]) -> dict[str, str]:
        """Return the formats of the texts in a response, by path: at the top, and in objects about paging."""
        formats: dict[str, str] = {}
        groups = {}
        for name, value in self._properties(schema).items():
            inner = self._document.mapping(value)
            if not _FIELD.fullmatch(name):
                continue
            if _plain(name) in _GROUPS:
                groups[name] = inner
            elif (form := _text_format(inner)) is not None:
                formats[name] = form
        for group, inner in groups.items():
            for name, value in self._properties(inner).items():
                form = _text_format(self._document.mapping(value))
                if _FIELD.fullmatch(name) and form is not None:
                    formats[f"{group}.{name}"] = form
        return formats


def _keys(stream: str, properties: Mapping[str, Any]) -> list[str]:
    by_plain = {_plain(name): name for name in properties}
    singular = _plain(stream).removesuffix("s")
    id_field = next((by_plain[key] for key in (*_KEYS, f"{singular}id", f"{singular}key") if key in by_plain), None)
    return [] if id_field is None else [id_field]


def _text_format(schema: Mapping[str, Any]) -> str | None:
    """Return the format of a text, "" without one; None for other types."""
    kinds = schema.get("type")
    if kinds == "string" or (isinstance(kinds, list) and "string" in kinds):
        return str(schema.get("format", ""))
    parts = schema.get("anyOf")
    forms = [_text_format(part) for part in parts if isinstance(part, Mapping)] if isinstance(parts, list) else []
    return next((form for form in forms if form is not None), None)


def _json_of(answer: Mapping[str, Any]) -> Any:
    """Return the schema of a response's JSON."""
    content = answer.get("content")
    for kind, value in content.items() if isinstance(content, Mapping) else ():
        is_json = kind.partition(";")[0].strip().lower().endswith(("/json", "+json")) or kind == "*/*"
        if is_json and isinstance(value, Mapping):
            return value.get("schema") or {}
    return {}


_KEPT = ("anyOf", "oneOf", "allOf")
_TIMES = frozenset({"date-time", "date"})
_TYPES = frozenset({"string", "integer", "number", "boolean", "null", "array", "object"})
_MAX_TEXT = 500


def record_schema(document: ApiDocument, node: Any) -> dict[str, Any]:
    """Return the schema of a record with all references resolved: types, formats of times and descriptions.

    Limits, patterns and enumerations are left out, because many sources break them; and ``required``, so that
    properties can be deselected.

    Raises:
        SchemaError: a reference has no target, or the schema is invalid or too large.
    """
    schema = flatten(_structure(resolve_target(document.documents, document.target(node), depth=1)))
    if "properties" not in schema:
        raise SchemaError("is not the schema of an object with properties")
    return {"type": "object", **{name: value for name, value in schema.items() if name not in ("type", "description")}}


def _structure(schema: Any, depth: int = 0) -> Any:
    if not isinstance(schema, Mapping):
        return {}
    structure: dict[str, Any] = {}
    kinds = _kinds(schema)
    if kinds:
        structure["type"] = kinds[0] if len(kinds) == 1 else kinds
    if isinstance(schema.get("description"), str) and schema["description"].strip():
        structure["description"] = " ".join(schema["description"].split())[:_MAX_TEXT]
    if schema.get("format") in _TIMES and "string" in kinds:
        structure["format"] = schema["format"]
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        structure["properties"] = {
            name: _structure(value, depth + 1)
            for name, value in properties.items()
            if not (isinstance(value, Mapping) and value.get("writeOnly") is True)
        }
    if isinstance(schema.get("items"), Mapping):
        structure["items"] = _structure(schema["items"], depth + 1)
    if isinstance(schema.get("additionalProperties"), Mapping):
        structure["additionalProperties"] = _structure(schema["additionalProperties"], depth + 1)
    for keyword in _KEPT:
        parts = schema.get(keyword)
        if isinstance(parts, list) and parts:
            # A record may match several alternatives once their limits are gone.
            name = "anyOf" if keyword == "oneOf" else keyword
            structure[name] = [_structure(part, depth + 1) for part in parts]
    return _with_null(structure) if schema.get("nullable") is True else structure


def _kinds(schema: Mapping[str, Any]) -> list[str]:
    kind = schema.get("type")
    kinds = [kind] if isinstance(kind, str) else list(kind) if isinstance(kind, list) else []
    if not kinds and isinstance(schema.get("properties"), Mapping):
        kinds = ["object"]
    return [each for each in kinds if each in _TYPES]


def _with_null(schema: dict[str, Any]) -> dict[str, Any]:
    if "type" in schema:
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        return {**schema, "type": kinds if "null" in kinds else ["null", *kinds]}
    return {"anyOf": [{"type": "null"}, schema]} if schema else schema
