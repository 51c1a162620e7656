"""balog's validation of JSON Schema against the package jsonschema, on generated schemas and payloads."""

import json
import random
from typing import Any

import jsonschema
import pytest

from balog.registry import InvalidSchemaError
from balog.registry.json_schema import JsonValidator
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


PYTHON = {
    "b$": "b\\Z",
    "^[^b]*$": "^[^b]*\\Z",
    "\\d": "[0-9]",
    "^\\w{2,3}$": "^[0-9A-Za-z_]{2,3}\\Z",
    "^.$": "^.\\Z",
}
"""Patterns that Python reads otherwise than ECMA 262, and how Python says the same."""


def in_python(node: Any) -> Any:
    """Return a schema with its patterns as Python writes them."""
    if isinstance(node, dict):
        return {PYTHON.get(name, name): in_python(inner) for name, inner in node.items()}
    if isinstance(node, list):
        return [in_python(inner) for inner in node]
    return PYTHON.get(node, node) if isinstance(node, str) else node


@pytest.mark.parametrize("seed", seeds(20))
def test_payloads_are_valid_where_jsonschema_says_so(seed: int):
    for document, payloads in cases(seed):
        validator = JsonValidator(document)
        reference = jsonschema.Draft202012Validator(in_python(document))
        for each in payloads:
            data = json.dumps(each).encode()
            found = validator.check(data)
            assert (not found) == reference.is_valid(each), (document, each)
            for violation in found:
                assert violation.path.startswith("$")
                assert violation.path.isprintable()
                assert violation.reason.isprintable()
