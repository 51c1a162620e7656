"""What holds for any record, schema and rule: untouched bytes, nothing of a masked value, a schema that still fits."""

import json

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from balog.broker.editor import PipeError
from balog.broker.records.json_members import UnreadableError, read_members, read_value, write
from tests.broker.records.editing import build, record

jsonschema = pytest.importorskip("jsonschema", reason="needs the extra schema")

NAMES = ["a", "b", "c", "x_1"]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
    max_leaves=8,
)
MASKS = st.sampled_from(["md5", "redact", "null", {"how": "redact", "text": "?"}])


@given(data=st.dictionaries(st.text(max_size=5), VALUES, max_size=6))
def test_reading_and_writing_one_level_keeps_every_value(data):
    text = json.dumps(data, separators=(", ", ": "))
    members = read_members(text.encode())
    assert list(members) == list(data)
    for name, raw in members.items():
        assert bytes(raw).decode() == json.dumps(data[name], separators=(", ", ": "))


@given(
    data=st.binary(max_size=60) | st.from_regex(r'\{("[a-b]":([0-9]|NaN|"x"|\[1, NaN\]),?){0,3}\} ?').map(str.encode)
)
def test_the_lenient_reader_takes_what_python_takes_and_nothing_else(data):
    try:
        expected = json.loads(data.decode("utf-8", "surrogateescape"))
    except ValueError:
        expected = None
    try:
        members = read_members(data)
    except UnreadableError:
        assert not isinstance(expected, dict)
        return
    if isinstance(expected, dict):  # msgspec takes bytes that are no UTF-8 in a value that it skips, as they are
        assert list(members) == list(expected)


SECRET = "S3CR3T"
CARRIERS = st.sampled_from(
    [f'"{SECRET}"', f'["{SECRET}"]', f'{{"k":"{SECRET}"}}', f'"\\u0020{SECRET}\\n"', f'[[{{"k":["{SECRET}"]}}],1]']
)


@given(
    path=st.lists(st.sampled_from(NAMES), min_size=1, max_size=3),
    value=CARRIERS,
    how=st.sampled_from(["md5", "redact", "null"]),
    around=st.dictionaries(st.sampled_from(["p", "q"]), VALUES, max_size=2),
    in_array=st.booleans(),
    is_double=st.booleans(),
)
def test_a_masked_value_never_goes_on(path, value, how, around, in_array, is_double):
    text = value
    for name in reversed(path):
        double = f'"{name}":{text},' if is_double else ""
        rest = "".join(f",{json.dumps(key)}:{json.dumps(item)}" for key, item in around.items())
        text = f'{{{double}"{name}":{text}{rest}}}'
        if in_array and name is not path[0]:
            text = f"[1,{text}]"
    edited = build({"stream": "users", "mask": {".".join(path): how}}).edit("RECORD", record(text))
    assert SECRET.encode() not in edited[0][1]


# Schemas with records that fit


@st.composite
def described(draw, depth=2):
    """Give a schema and a strategy of values that fit it."""
    kind = draw(st.sampled_from(["string", "integer", "number", "boolean", "any", *["object", "array"] * (depth > 0)]))
    node, values = draw(KINDS[kind](depth) if kind in ("object", "array") else KINDS[kind])
    way = draw(st.sampled_from(["plain", "plain", "list", "anyOf", "oneOf", "allOf", "ref"]))
    if way == "list" and "type" in node and "enum" not in node:
        return {**node, "type": ["null", node["type"]]}, values | st.none()
    if way in ("anyOf", "oneOf") and "type" in node:
        return {way: [node, {"type": "null"}]}, values | st.none()
    if way == "allOf":
        return {"allOf": [node], "title": "t"}, values
    if way == "ref":
        return {"$ref": node}, values  # put among the definitions later
    return node, values


@st.composite
def objects(draw, depth):
    properties, values = {}, {}
    for name in draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=3)):
        properties[name], values[name] = draw(described(depth - 1))
    node = {"type": "object", "properties": properties}
    required = draw(st.lists(st.sampled_from(sorted(properties)), unique=True)) if properties else []
    if required:
        node["required"] = required
    rest = draw(st.sampled_from(["absent", "closed", "typed", "pattern"]))
    others = st.just({})
    if rest == "closed":
        node["additionalProperties"] = False
    elif rest == "typed":
        node["additionalProperties"] = {"type": "integer"}
        others = st.dictionaries(st.sampled_from(["b", "c", "y"]), st.integers(), max_size=2)
    elif rest == "pattern":
        node["patternProperties"] = {"^y": {"type": "string"}}
        others = st.dictionaries(st.sampled_from(["y1", "y2"]), st.text(max_size=3), max_size=2)
    optional = {name: strategy for name, strategy in values.items() if name not in required}
    own = st.fixed_dictionaries({name: values[name] for name in required}, optional=optional)
    return node, st.tuples(others, own).map(
        lambda both: {**{name: value for name, value in both[0].items() if name not in properties}, **both[1]}
    )


@st.composite
def arrays(draw, depth):
    items, values = draw(described(depth - 1))
    return {"type": "array", "items": items}, st.lists(values, max_size=2)


KINDS = {
    "string": st.sampled_from(
        [
            ({"type": "string"}, st.text(max_size=5)),
            ({"type": "string", "enum": ["u", "v"]}, st.sampled_from(["u", "v"])),
            ({"type": "string", "maxLength": 3}, st.text(max_size=3)),
        ]
    ),
    "integer": st.just(({"type": "integer", "minimum": 0}, st.integers(min_value=0))),
    "number": st.just(({"type": "number"}, st.floats(allow_nan=False, allow_infinity=False) | st.integers())),
    "boolean": st.just(({"type": "boolean"}, st.booleans())),
    "any": st.just(({}, st.none() | st.integers() | st.text(max_size=3))),
    "object": objects,
    "array": arrays,
}

PATHS = st.lists(st.sampled_from([*NAMES, "y1"]), min_size=1, max_size=3).map(".".join)
RENAMES = st.sampled_from(
    [{"a": "r1"}, {"a": "r1", "b": "r2"}, {"a": "y2"}, {"a.b": "r1"}, {"a.b": "r1", "a.c": "r2"}, {"x_1": "a__b"}]
)
SETTINGS = st.sampled_from(
    [{"a": "t"}, {"n": 1}, {"n": {"expr": "a"}}, {"b": {"expr": "UPPER(a)"}}, {"y1": None}, {"n": {"expr": "a > 1"}}]
)
RULES = st.fixed_dictionaries(
    {},
    optional={
        "set": SETTINGS,
        "mask": st.dictionaries(PATHS, MASKS, max_size=2),
        "drop": st.lists(PATHS, max_size=2),
        "rename": RENAMES,
    },
)


def with_definitions(node):
    """Put what stands in a ``$ref`` among the root's definitions."""
    definitions = {}

    def place(part):
        if isinstance(part, dict):
            part = {key: place(value) for key, value in part.items()}
            if isinstance(part.get("$ref"), dict):
                name = f"D{len(definitions)}"
                definitions[name] = part["$ref"]
                return {"$ref": f"#/definitions/{name}"}
            return part
        return [place(item) for item in part] if isinstance(part, list) else part

    return {**place(node), "definitions": definitions}


def fits(schema, data):
    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(schema).is_valid(data)


@settings(max_examples=150, deadline=None)
@given(data=st.data(), rules=st.lists(RULES, min_size=1, max_size=2))
def test_a_record_that_fits_its_schema_still_fits_after_the_rules(data, rules):
    node, values = data.draw(objects(depth=3))
    schema, given_record = with_definitions(node), data.draw(values)
    assert fits(schema, given_record)
    stream = build(*[{"stream": "users", **rule} for rule in rules]).rules_for("users")
    before = msgspec.json.encode(schema)
    try:
        after = stream.apply_schema(schema).root
        changed = stream.apply(read_members(json.dumps(given_record).encode()))
    except (PipeError, UnreadableError) as error:
        assume("same name" not in str(error) and "would be called" not in str(error))
        raise
    assert msgspec.json.encode(schema) == before
    document = read_value(write(changed))
    assert fits(after, document), (schema, given_record, after, document)
