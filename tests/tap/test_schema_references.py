"""References in schemas: every form in which they are written, and what is valid before is so after."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from referencing import Registry
from referencing.jsonschema import DRAFT7, DRAFT202012

from balog.tap.errors import SchemaError
from balog.tap.schema import json_file, resolve
from balog.tap.schema.references import flatten

STREET = {"type": "string", "maxLength": 3}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"a": {"$ref": "#/definitions/s"}}, STREET),
        ({"a": {"$ref": "#/$defs/s"}}, STREET),
        ({"a": {"$ref": "#/properties/b"}, "b": STREET}, STREET),
        ({"a": {"$ref": "#/custom/place/0"}}, STREET),
        ({"a": {"$ref": "#street"}}, STREET),
        ({"a": {"$ref": "#old-street"}}, STREET),
        ({"a": {"$ref": "urn:example:street"}}, STREET),
        ({"a": {"$ref": "https://example.com/street.json"}}, STREET),
        ({"a": {"$ref": "#/$defs/a~1b~0c%25%20d"}}, STREET),
        ({"a": {"$ref": "#/$defs/twice"}}, STREET),
        ({"a": {"$dynamicRef": "#street"}}, STREET),
        ({"a": {"$ref": "#/$defs/yes"}}, {}),
        ({"a": {"$ref": "#/$defs/no"}}, {"not": {}}),
        ({"a": {"$ref": "#/$defs/s", "description": "where"}}, {**STREET, "description": "where"}),
        ({"a": {"$ref": "#/$defs/s", "maxLength": 2}}, {"allOf": [STREET, {"maxLength": 2}]}),
        ({"a": {"$ref": "#/$defs/s", "pattern": "a"}}, {**STREET, "pattern": "a"}),
        ({"a": {"items": [{"$ref": "#/$defs/s"}]}}, {"items": [STREET]}),
        ({"a": {"type": "object", "definitions": {"x": {}}}}, {"type": "object"}),
    ],
)
def test_a_reference_within_a_document(schema: dict[str, Any], expected: Any) -> None:
    document = {
        "properties": schema,
        "definitions": {"s": STREET},
        "$defs": {
            "s": STREET,
            "anchored": {"$anchor": "street", **STREET},
            "draft 7": {"$id": "#old-street", **STREET},
            "urn": {"$id": "urn:example:street", **STREET},
            "web": {"$id": "https://example.com/street.json", **STREET},
            "a/b~c% d": STREET,
            "twice": {"$ref": "#/$defs/s"},
            "yes": True,
            "no": False,
        },
        "custom": {"place": [STREET]},
    }
    assert resolve(document)["properties"]["a"] == expected


def test_what_only_looks_like_a_reference_is_left() -> None:
    schema = {
        "properties": {"$ref": {"type": "string"}, "definitions": {"type": "string"}, "id": {"type": "string"}},
        "enum": [{"$ref": "#/nowhere"}],
        "default": {"$ref": "#/nowhere"},
    }
    assert resolve(schema) == schema


def test_the_given_schema_is_left_as_it_was() -> None:
    schema = {"properties": {"a": {"$ref": "#/$defs/s"}}, "$defs": {"s": {"properties": {"b": {}}}}}
    before = json.dumps(schema)
    resolve(schema)["properties"]["a"]["properties"]["b"]["type"] = "string"
    assert json.dumps(schema) == before


def test_beside_a_reference_of_draft_7_nothing_counts_but_words() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {"a": {"$ref": "#/definitions/s", "maxLength": 1, "title": "A"}},
        "definitions": {"s": STREET},
    }
    assert resolve(schema) == {"$schema": schema["$schema"], "properties": {"a": {**STREET, "title": "A"}}}


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., str]:
    def write(**files: Any) -> str:
        for name, schema in files.items():
            path = tmp_path / name.replace("__", "/").replace("_json", ".json")
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps(schema))
        return str(tmp_path / "main.json")

    return write


@pytest.mark.parametrize(
    "reference",
    [
        "shared/address.json",
        "./shared/../shared/address.json",
        "shared/address.json#",
        "shared/address.json#/definitions/again",
        "https://example.com/schemas/shared/address.json",
    ],
)
def test_a_reference_to_a_file(folder: Callable[..., str], reference: str) -> None:
    base = folder(
        shared__address_json={
            "$id": "https://example.com/schemas/shared/address.json",
            "properties": {"street": {"$ref": "street.json"}, "back": {"$ref": "../main.json#/definitions/n"}},
            "definitions": {"again": {"$ref": "#"}},
        },
        shared__street_json=STREET,
        main_json={"definitions": {"n": {"type": "null"}}},
    )
    schema = {
        "properties": {"known": {"$ref": "shared/address.json"}, "a": {"$ref": reference}},
        "definitions": {"n": {"type": "null"}},
    }
    found = resolve(schema, base)
    assert found["properties"]["a"] == {"properties": {"street": STREET, "back": {"type": "null"}}}


def test_files_that_refer_to_each_other_are_followed_to_a_depth(folder: Callable[..., str]) -> None:
    base = folder(
        main_json={"type": "object", "properties": {"b": {"$ref": "b.json"}}},
        b_json={"type": "object", "properties": {"main": {"$ref": "main.json"}}},
    )
    found = resolve(json.loads(Path(base).read_text()), base, depth=0)
    assert found == {
        "type": "object",
        "properties": {"b": {"type": "object", "properties": {"main": {"type": "object"}}}},
    }


def test_a_tree_is_followed_into_itself_as_often_as_asked() -> None:
    tree = {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}}}

    def levels(schema: Any) -> int:
        return 0 if "properties" not in schema else 1 + levels(schema["properties"]["children"]["items"])

    assert [levels(resolve(tree, depth=depth)) for depth in (0, 1, 3)] == [1, 2, 4]


@pytest.mark.parametrize("keyword", ["not", "oneOf", "if", "unevaluatedProperties", "contains"])
def test_what_is_cut_refuses_nothing_that_was_valid(keyword: str) -> None:
    node = {
        "type": "object",
        "properties": {"in": {"$ref": "#/$defs/node"}, "kind": {"const": 1}},
        "required": ["kind"],
    }
    asked = {
        "not": {"not": {"$ref": "#/$defs/node"}},
        "oneOf": {"oneOf": [{"$ref": "#/$defs/node"}, {"type": "object", "properties": {"kind": {"const": 2}}}]},
        "if": {"if": {"$ref": "#/$defs/node"}, "then": {"required": ["kind"]}, "else": {"maxProperties": 1}},
        "unevaluatedProperties": {"allOf": [{"$ref": "#/$defs/node"}], "unevaluatedProperties": False},
        "contains": {"properties": {"l": {"contains": {"$ref": "#/$defs/node"}, "maxContains": 1}}},
    }[keyword]
    schema = {**asked, "$defs": {"node": node}}
    found = jsonschema.Draft202012Validator(resolve(schema, depth=0))
    given = jsonschema.Draft202012Validator(schema)
    deep = {"kind": 1, "in": {"kind": 1, "in": {"kind": 1}}}
    wrong = {"kind": 1, "in": {"kind": 2}}
    for instance in (deep, wrong, {"kind": 2, "in": wrong}, {"kind": 2}, {"l": [deep, wrong]}, {"in": wrong}):
        if given.is_valid(instance):
            assert found.is_valid(instance), instance


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (
            {"properties": {"a": {"$ref": "#/definitions/adress"}}, "definitions": {"address": {}}},
            "$.properties.a['$ref']: '#/definitions/adress' has no target: #/definitions has no 'adress'; it has "
            "address",
        ),
        ({"items": {"$ref": "#nowhere"}}, "$.items['$ref']: '#nowhere' has no target: there is no anchor 'nowhere'"),
        ({"$ref": "#"}, "$['$ref']: '#' is circular"),
        ({"allOf": [{"$ref": "#"}]}, "$.allOf[0]['$ref']: '#' is circular"),
        (
            {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "not": {"$ref": "#/$defs/a"}},
            "$['$defs'].b['$ref']: '#/$defs/a' is circular",
        ),
        (
            {"$ref": "nothing.json"},
            "$['$ref']: 'nothing.json' has no target: nothing.json cannot be read: No such file or directory",
        ),
        (
            {"$ref": "https://example.com/a.json"},
            "$['$ref']: 'https://example.com/a.json' has no target: https://example.com/a.json is not fetched; store "
            "a copy next to the schema",
        ),
        (
            {"$ref": "#/required", "required": ["a"]},
            '$[\'$ref\']: \'#/required\' is not a schema: $: ["a"] is not of types "boolean", "object"',
        ),
        ({"$ref": 1}, "$['$ref']: expected a text; found int"),
    ],
)
def test_a_reference_that_leads_nowhere_is_one_line(schema: dict[str, Any], reason: str) -> None:
    with pytest.raises(SchemaError) as caught:
        resolve(schema)
    assert str(caught.value) == reason


def test_the_error_names_the_file_that_the_reference_is_in(folder: Callable[..., str]) -> None:
    base = folder(b_json={"properties": {"x": {"$ref": "c.json"}}}, c_json=[1])
    with pytest.raises(SchemaError, match=r"b\.json: \$\.properties\.x\['\$ref'\]: 'c\.json' is not a schema"):
        resolve({"$ref": "b.json"}, base)


def test_references_that_double_with_each_step_are_refused() -> None:
    steps = {
        str(n): {"properties": {"a": {"$ref": f"#/$defs/{n + 1}"}, "b": {"$ref": f"#/$defs/{n + 1}"}}}
        for n in range(30)
    }
    with pytest.raises(SchemaError, match="more than 10000 schemas when references are resolved"):
        resolve({"$ref": "#/$defs/0", "$defs": {**steps, "30": {}}})


# Random schemas, whose references lead to definitions that come later: the oracle is the jsonschema package.

_NAMES = st.sampled_from(["a", "b", "c"])
_VALUES = st.sampled_from([None, True, 0, 1, 1.5, "", "a", "bb", [], {}])
_INSTANCES = st.recursive(
    _VALUES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=3), max_leaves=8
)


@cache
def _schemas(later: int) -> st.SearchStrategy[Any]:
    leaf = st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["object", "array", "string", "integer", "number", ["null", "string"], "boolean"]),
            "minLength": st.integers(0, 2),
            "maximum": st.integers(0, 2),
            "minProperties": st.integers(0, 2),
            "maxItems": st.integers(0, 2),
            "required": st.lists(_NAMES, unique=True, max_size=2),
            "const": _VALUES,
            "enum": st.lists(_VALUES, min_size=1, max_size=4),
            "title": st.just("T"),
            "uniqueItems": st.booleans(),
        },
    )
    return st.recursive(leaf | st.booleans(), lambda inner: _composed(inner, later), max_leaves=6)


def _composed(inner: st.SearchStrategy[Any], later: int) -> st.SearchStrategy[Any]:
    many = st.lists(inner, min_size=1, max_size=2)
    maps = st.dictionaries(_NAMES, inner, max_size=2)
    keywords: dict[str, st.SearchStrategy[Any]] = {
        "properties": maps,
        "patternProperties": st.dictionaries(st.sampled_from(["^a", "b"]), inner, max_size=1),
        "items": inner,
        "prefixItems": many,
        "allOf": many,
        "dependentSchemas": maps,
        "type": st.sampled_from(["object", "array", ["null", "object"]]),
        **dict.fromkeys(("anyOf", "oneOf"), many),
        **dict.fromkeys(("additionalProperties", "contains", "not", "if", "then", "else", "propertyNames"), inner),
        **dict.fromkeys(("unevaluatedProperties", "unevaluatedItems"), inner),
    }
    if later < 4:
        keywords["$ref"] = st.integers(later, 3).map("#/$defs/{}".format)
    names = st.lists(st.sampled_from(sorted(keywords)), unique=True, min_size=1, max_size=4)
    return names.flatmap(lambda names: st.fixed_dictionaries({name: keywords[name] for name in names}))


@st.composite
def _documents(draw: Any) -> dict[str, Any]:
    document = draw(_schemas(0).filter(lambda schema: isinstance(schema, dict)))
    return {**document, "$defs": {str(n): draw(_schemas(n + 1)) for n in range(4)}}


def _validator(schema: Any, draft: Any) -> Any:
    kind = {DRAFT7: jsonschema.Draft7Validator, DRAFT202012: jsonschema.Draft202012Validator}[draft]
    return kind(schema, registry=Registry())


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@example({"allOf": [{"unevaluatedItems": False}, {"unevaluatedItems": {}}]}, [[None]])
@given(_documents(), st.lists(_INSTANCES, min_size=4, max_size=8))
def test_resolved_and_flat_a_schema_is_valid_for_the_same(schema: dict[str, Any], instances: list[Any]) -> None:
    resolved = resolve(schema)
    flat = flatten(resolved)
    assert '"$ref"' not in json.dumps(resolved)
    assert '"$defs"' not in json.dumps(resolved)
    expected = [_validator(schema, DRAFT202012).is_valid(instance) for instance in instances]
    assert [_validator(resolved, DRAFT202012).is_valid(instance) for instance in instances] == expected
    assert [_validator(flat, DRAFT202012).is_valid(instance) for instance in instances] == expected


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(_documents(), st.lists(_INSTANCES, min_size=4, max_size=8))
def test_a_schema_of_draft_7_too(schema: dict[str, Any], instances: list[Any]) -> None:
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", **schema}
    expected = [_validator(schema, DRAFT7).is_valid(instance) for instance in instances]
    assert [_validator(resolve(schema), DRAFT7).is_valid(instance) for instance in instances] == expected


def test_references_as_singer_s_own_taps_write_them(folder: Callable[..., str]) -> None:
    """``#/`` is all of a file, and a file in a folder names its neighbours from where the first file is."""
    stream = folder(
        main_json={"$ref": "shared/charge.json#/"},
        shared__charge_json={"type": "object", "properties": {"source": {"$ref": "shared/source.json#/"}}},
        shared__source_json={"type": "string"},
    )
    assert json_file(stream)(None, "charges") == {"type": "object", "properties": {"source": {"type": "string"}}}


@pytest.mark.parametrize(
    ("schema", "instances"),
    [
        (
            {"unevaluatedProperties": False, "additionalProperties": True, "allOf": [{"properties": {"a": {}}}]},
            [{"b": 1}, {"a": 1}, {}],
        ),
        (
            {
                "unevaluatedProperties": False,
                "allOf": [{"additionalProperties": True, "properties": {}, "allOf": [{"properties": {"a": {}}}]}],
            },
            [{"b": 1}, {"a": 1}, {}],
        ),
        (
            {"properties": {"a": {}}, "allOf": [{"properties": {"b": {}}, "unevaluatedProperties": False}]},
            [{"a": 1}, {"b": 1}, {}],
        ),
        (
            {"prefixItems": [{}], "allOf": [{"type": "array", "unevaluatedItems": False}]},
            [[1], [], [1, 2]],
        ),
        (
            {"unevaluatedProperties": False, "anyOf": [{"type": "object", "properties": {"a": {}}}, {"type": "null"}]},
            [{"a": 1}, {"b": 1}, None, {}],
        ),
    ],
)
def test_merging_leaves_what_counts_as_evaluated(schema: dict[str, Any], instances: list[Any]) -> None:
    expected = [_validator(schema, DRAFT202012).is_valid(instance) for instance in instances]
    assert [_validator(flatten(schema), DRAFT202012).is_valid(instance) for instance in instances] == expected


@pytest.mark.parametrize("name", ["$ref", "$id"])
def test_an_address_that_is_none_leads_nowhere(name: str) -> None:
    schema = {
        "type": "object",
        "properties": {"a": {name: "//["}, "b": {"$ref": "#/allOf/" + "9" * 5000}},
        "allOf": [{}],
    }
    with pytest.raises(SchemaError, match="has no target"):
        resolve(schema)


def _chain(length: int) -> dict[str, Any]:
    links = {f"a{at}": {"properties": {"x": {"$ref": f"#/$defs/a{at + 1}"}}} for at in range(length)}
    return {"$defs": {**links, f"a{length}": {}}, "$ref": "#/$defs/a0"}


def _doubled(levels: int) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        made = {"properties": {"a": made, "b": made}}
    return made


def _circle() -> dict[str, Any]:
    made: dict[str, Any] = {}
    made["properties"] = {"a": made, "b": made}
    return made


def _nested(levels: int) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for _ in range(levels):
        made = {"items": made}
    return made


@pytest.mark.parametrize("schema", [_chain(3000), _doubled(45), _circle(), _nested(20_000)])
def test_schemas_that_are_too_much_are_refused_at_once(schema: dict[str, Any]) -> None:
    with pytest.raises(SchemaError, match=r"nested deeper than 100|more than 10000 schemas"):
        resolve(schema)
