"""balog's validation of JSON Schema against the package jsonschema, on generated schemas and payloads.

Also its own fallback on jsonschema, where jsonschema-rs is not installed.
"""

import json
import random
import sys
from typing import Any

import jsonschema
import pytest

from balog.registry import InvalidSchemaError
from balog.registry.comparing.unevaluated import replace_unevaluated
from balog.registry.json_schema import JsonValidator
from balog.registry.validator_pair import ValidatorPair
from tests.oracles.effort import seeds

NAMES = ["a", "b", "ab", "c d", "é"]
KINDS = ["null", "boolean", "integer", "number", "string", "array", "object"]
PATTERNS = ["^a", "b$", "[0-9]+", "^[^b]*$", "\\d", "^\\w{2,3}$", "a|é", "^.$", "\\s"]
TEXTS = ["", "a", "b", "ab", "a1", "é", "éé", "a\n", "١", "b b", "\t", "aab", "10"]
SCALARS = [None, True, False, 0, 1, -3, 2.5, 3.0, 7, 2**53, 2**70, -(2**70), *TEXTS]


def payload(chance: random.Random, depth: int = 3) -> Any:
    kind = chance.random()
    if kind < 0.5 or not depth:
        return chance.choice(SCALARS)
    if kind < 0.7:
        return [payload(chance, depth - 1) for _ in range(chance.randrange(4))]
    return {chance.choice(NAMES): payload(chance, depth - 1) for _ in range(chance.randrange(4))}


def schema(chance: random.Random, depth: int = 3) -> Any:
    if not depth or chance.random() < 0.05:
        return chance.choice([True, False, {}, {"type": chance.choice(KINDS)}])

    def inner() -> Any:
        return schema(chance, depth - 1)

    def some() -> list[Any]:
        return [inner() for _ in range(chance.randrange(1, 4))]

    def members(names: list[str]) -> dict[str, Any]:
        return {name: inner() for name in chance.sample(names, chance.randrange(3))}

    makers: dict[str, Any] = {
        "type": lambda: chance.choice([chance.choice(KINDS), chance.sample(KINDS, 2)]),
        "enum": lambda: [payload(chance, 1) for _ in range(3)],
        "const": lambda: payload(chance, 1),
        "minimum": lambda: chance.randrange(-4, 4),
        "exclusiveMaximum": lambda: chance.randrange(-4, 4),
        "multipleOf": lambda: chance.choice([1, 2, 3]),
        "minLength": lambda: chance.randrange(4),
        "maxLength": lambda: chance.randrange(4),
        "pattern": lambda: chance.choice(PATTERNS),
        "minItems": lambda: chance.randrange(4),
        "maxItems": lambda: chance.randrange(4),
        "uniqueItems": lambda: True,
        "prefixItems": some,
        "items": inner,
        "contains": inner,
        "minContains": lambda: chance.randrange(4),
        "unevaluatedItems": inner,
        "properties": lambda: members(NAMES),
        "patternProperties": lambda: members(PATTERNS),
        "additionalProperties": inner,
        "unevaluatedProperties": inner,
        "propertyNames": inner,
        "required": lambda: chance.sample(NAMES, 1),
        "dependentRequired": lambda: {chance.choice(NAMES): chance.sample(NAMES, chance.randrange(3))},
        "minProperties": lambda: chance.randrange(3),
        "maxProperties": lambda: chance.randrange(4),
        "allOf": some,
        "anyOf": some,
        "oneOf": some,
        "not": inner,
        "if": inner,
        "then": inner,
        "else": inner,
        "$ref": lambda: chance.choice(["#/$defs/d", "#/$defs/d", "#"]),
    }
    return {name: makers[name]() for name in chance.sample(list(makers), chance.randrange(1, 5))}


def cases(seed: int) -> Any:
    chance = random.Random(seed)
    for _ in range(60):
        document = schema(chance)
        if not isinstance(document, dict):
            document = {"allOf": [document]}
        document["$defs"] = {"d": chance.choice([{"type": chance.choice(KINDS)}, {"items": {"$ref": "#/$defs/d"}}])}
        try:
            JsonValidator(document)
        except InvalidSchemaError:  # a $ref leads back to its own place
            continue
        yield document, [payload(chance) for _ in range(15)]


def ecma(document: Any) -> bool:
    """Return whether Python reads a schema's patterns as ECMA 262 does."""
    return not any(letter in json.dumps(document, ensure_ascii=False) for letter in ("\\\\d", "\\\\w", "\\\\s", '$"'))


@pytest.mark.parametrize("seed", seeds(20))
def test_payloads_are_valid_where_jsonschema_says_so(seed: int):
    for document, payloads in cases(seed):
        validator = JsonValidator(document)
        reference = jsonschema.Draft202012Validator(document)
        pair = ValidatorPair(document)
        for each in payloads:
            data = json.dumps(each).encode()
            found = validator.check_in_process(data)
            if ecma(document):
                assert (not found) == reference.is_valid(each), (document, each)
            for violation in found:
                assert violation.path.startswith("$")
                assert violation.path.isprintable()
                assert violation.reason.isprintable()
            assert pair.disagreement(each) == "", (document, each)


@pytest.mark.parametrize("seed", seeds(10))
def test_additional_properties_in_place_of_unevaluated_ones_take_the_same_payloads(seed: int):
    for document, payloads in cases(seed):
        written = {"unevaluatedProperties": {"type": "integer"}, **document}
        plain, rewritten = (jsonschema.Draft202012Validator(one) for one in (written, replace_unevaluated(written)))
        for each in payloads:
            assert plain.is_valid(each) == rewritten.is_valid(each), (written, each)


@pytest.fixture
def no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)


@pytest.mark.parametrize("seed", seeds(8))
def test_without_jsonschema_rs_the_same_payloads_are_valid(seed: int, monkeypatch: pytest.MonkeyPatch):
    for document, payloads in cases(seed):
        fast = JsonValidator(document)
        expected = [not fast.check_in_process(json.dumps(each).encode()) for each in payloads]
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, "jsonschema_rs", None)
            slow = JsonValidator(document)
            found = [slow.check_in_process(json.dumps(each).encode()) for each in payloads]
        assert [not faults for faults in found] == expected, document
        for fault in (fault for faults in found for fault in faults):
            assert fault.path.startswith("$")
            assert fault.reason.isprintable()


@pytest.mark.usefixtures("no_wheel")
def test_without_jsonschema_rs_errors_have_the_same_words(capsys: pytest.CaptureFixture[str]):
    document = {
        "required": ["id"],
        "properties": {"n": {"type": "integer", "minimum": 3}, "t": {"pattern": "^a"}},
        "additionalProperties": False,
    }
    validator = JsonValidator(document)
    faults = validator.check_in_process(b'{"n": 1, "t": "s3cret", "x": 1}')

    assert sorted(faults) == [
        ("$", "'id' is missing"),
        ("$", "has members that it may not have: 'x'"),
        ("$.n", "is less than 3"),
        ("$.t", "does not match ^a"),
    ]
    JsonValidator(document)
    assert capsys.readouterr().err.count("jsonschema-rs is not installed") <= 1


@pytest.mark.usefixtures("no_wheel")
@pytest.mark.parametrize("pattern", ["(?=a)b", "(a)\\1", "(?<n>a)", "\\p{L}", "["])
def test_without_jsonschema_rs_a_pattern_that_python_reads_otherwise_is_refused(pattern: str):
    with pytest.raises(InvalidSchemaError):
        JsonValidator({"pattern": pattern})
