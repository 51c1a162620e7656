"""Schemas by chance, changes of them, and payloads that should be valid by them."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import reject
from hypothesis import strategies as st

from balog.registry import InvalidSchemaError, Schema
from balog.registry.complexity import measure_complexity

NAMES = ["a", "b", "c"]
TEXTS = ["", "x", "yy", "zzz"]

texts = st.sampled_from(TEXTS)
numbers = st.one_of(st.integers(-3, 9), st.sampled_from([0.5, 2.5]))

scalars = st.one_of(
    st.fixed_dictionaries({"type": st.just("string")}, optional={"minLength": st.integers(0, 2)}),
    st.fixed_dictionaries({"type": st.just("string")}, optional={"maxLength": st.integers(0, 3)}),
    st.fixed_dictionaries(
        {"type": st.just("string")}, optional={"pattern": st.sampled_from(["^x", "z+$", "^[a-y]*$"])}
    ),
    st.fixed_dictionaries({"type": st.just("string")}, optional={"format": st.sampled_from(["date", "date-time"])}),
    st.fixed_dictionaries(
        {"type": st.sampled_from(["integer", "number"])},
        optional={
            "minimum": st.integers(-2, 5),
            "maximum": st.integers(0, 8),
            "exclusiveMinimum": st.integers(-2, 2),
            "multipleOf": st.sampled_from([1, 2, 3, 0.5]),
        },
    ),
    st.sampled_from([{}, True, {"type": "boolean"}, {"type": "null"}, {"type": ["string", "null"]}]),
    st.fixed_dictionaries({"enum": st.lists(st.one_of(texts, st.integers(0, 3)), min_size=1, max_size=3, unique=True)}),
    st.fixed_dictionaries({"const": st.one_of(texts, st.integers(0, 2), st.none())}),
)


def _objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)},
        optional={
            "required": st.lists(st.sampled_from(NAMES), max_size=2, unique=True),
            "additionalProperties": st.one_of(st.booleans(), inner),
            "minProperties": st.integers(0, 2),
            "maxProperties": st.integers(1, 3),
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "b$"]), inner, max_size=1),
        },
    )


def _lists(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(
        {"type": st.just("array")},
        optional={
            "items": inner,
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
            "minItems": st.integers(0, 2),
            "maxItems": st.integers(0, 3),
            "uniqueItems": st.booleans(),
        },
    )


def _choices(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    some = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        st.fixed_dictionaries({"anyOf": some}),
        st.fixed_dictionaries({"oneOf": some}),
        st.fixed_dictionaries({"allOf": some}),
        st.fixed_dictionaries({"not": inner}),
        st.fixed_dictionaries({"if": inner, "then": inner}),
        st.just({"$ref": "#/$defs/one"}),
        st.just({"$ref": "#/$defs/two"}),
    )


nodes = st.recursive(
    scalars, lambda inner: st.one_of(_objects(inner), _lists(inner), _objects(inner), _choices(inner)), max_leaves=8
)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Give the schema of an object; two definitions can be referred to, also by themselves from below a member."""
    document: dict[str, Any] = dict(draw(_objects(nodes)))
    document["$defs"] = {
        "one": draw(st.one_of(scalars, _objects(scalars))),
        "two": draw(_objects(st.one_of(scalars, st.just({"$ref": "#/$defs/two"})))),
    }
    return document


@st.composite
def pairs(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """Give two schemas of which the second is a change of the first, or another one altogether."""
    old = draw(documents())
    new = _copy(draw(documents()) if draw(st.integers(0, 3)) == 0 else old)
    for _ in range(draw(st.integers(0, 3))):
        _change(draw, new)
    try:
        measure_complexity(new)
    except InvalidSchemaError:  # it asks itself of the same value
        reject()
    return old, new


def _copy(document: Any) -> Any:
    return json.loads(json.dumps(document))


def _change(draw: st.DrawFn, document: dict[str, Any]) -> None:
    places = list(_places(document))
    node = draw(st.sampled_from(places))
    match draw(st.sampled_from(["drop", "replace", "member", "required", "open"])):
        case "drop":
            words = [word for word in node if word not in ("$defs", "$ref")]
            if words:
                del node[draw(st.sampled_from(words))]
        case "replace":
            new = _copy(draw(nodes))
            if isinstance(new, dict) and "$defs" not in node:
                node.clear()
                node.update(new)
        case "member":
            node.setdefault("properties", {})[draw(st.sampled_from(NAMES))] = _copy(draw(scalars))
        case "required":
            node["required"] = draw(st.lists(st.sampled_from(NAMES), max_size=2, unique=True))
        case "open":
            node["additionalProperties"] = draw(st.booleans())


def _places(node: Any) -> Any:
    if isinstance(node, dict):
        yield node
        for word, inner in node.items():
            if word in ("properties", "patternProperties", "$defs"):
                for one in inner.values():
                    yield from _places(one)
            elif word in ("additionalProperties", "items", "not", "if", "then"):
                yield from _places(inner)
            elif word in ("prefixItems", "anyOf", "oneOf", "allOf"):
                for one in inner:
                    yield from _places(one)


plain = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, texts, st.sampled_from(["2020-01-01", "2020-01-01T00:00:00Z"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from([*NAMES, "d"]), inner, max_size=3)
    ),
    max_leaves=6,
)


def payloads(node: Any, document: dict[str, Any], depth: int = 0) -> st.SearchStrategy[Any]:
    """Give payloads that are likely to be valid by a schema; those that are not have to be left out."""
    if not isinstance(node, dict) or depth > 5:
        return plain
    if "$ref" in node:
        return payloads(document["$defs"][node["$ref"].rsplit("/", 1)[1]], document, depth + 1)
    for word in ("anyOf", "oneOf", "allOf"):
        if word in node:
            return st.one_of([payloads(part, document, depth + 1) for part in node[word]])
    if "enum" in node or "const" in node:
        return st.sampled_from(node.get("enum", [node.get("const")]))
    match node.get("type"):
        case "object":
            members = {name: payloads(inner, document, depth + 1) for name, inner in node.get("properties", {}).items()}
            more = payloads(node.get("additionalProperties", True), document, depth + 1)
            needed = {name: members.pop(name, more) for name in node.get("required", [])}
            others = {name: more for name in [*NAMES, "d"] if name not in needed and name not in members}
            return st.fixed_dictionaries(needed, optional={**members, **others})
        case "array":
            inner = payloads(node.get("items", True), document, depth + 1)
            first = [payloads(one, document, depth + 1) for one in node.get("prefixItems", [])]
            return st.builds(lambda head, tail: [*head, *tail], st.tuples(*first), st.lists(inner, max_size=2))
        case "integer" | "number":
            return numbers
        case "string":
            return st.one_of(texts, st.sampled_from(["2020-01-01", "2020-01-01T00:00:00Z"]))
    return plain


def json_schema(document: Any, version: str = "1.0.0") -> Schema:
    return Schema("order", version, "json", json.dumps(document).encode())
