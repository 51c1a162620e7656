"""The examples in the schemas of configs: each option that needs one has one, and balog accepts each document."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from balog.cli import main
from balog.sinks.base import SINKS
from tests.ci_scripts import ci_script
from tests.test_schemas import CONFIGS, ROOT

write_schema = ci_script("config_schemas").write_schema

CHECKED_FOR = {"document": "document", "monitors": "monitors", "service": "serve", "logger": "logger", "cases": "cases"}
NO_COMMAND = {"patch", "tokens"}
UNITLESS = {
    *("port", "sensitivity", "rise", "depth", "exit_code", "sample", "seed", "buckets", "schema"),
    *("over", "under"),  # of the metric that a monitor names
}
SCHEMAS = {name: json.loads((ROOT / f"schemas/config/{name}.json").read_bytes()) for name in CONFIGS}
config_reference = ci_script("docs/config_reference")


def parts(schema: Any, definitions: Any) -> list[Any]:
    if "$ref" in schema:
        return parts(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "anyOf" in schema and "properties" not in schema:
        return [each for part in schema["anyOf"] for each in parts(part, definitions)]
    return [schema]


def says_enough(part: Any) -> bool:
    """Whether a type needs no example: a choice, or a part of the config, whose fields have their own."""
    return "enum" in part or "properties" in part or part.get("type") in ("boolean", "null")


def fields(name: str) -> list[tuple[str, str, Any]]:
    """Return struct, name and schema of each field of a config."""
    return [
        (struct, field, schema)
        for struct, definition in SCHEMAS[name]["$defs"].items()
        for field, schema in definition.get("properties", {}).items()
        if field not in ("type", "$schema")
    ]


@pytest.mark.parametrize("name", CONFIGS)
def test_every_example_is_valid_by_its_schema(name: str) -> None:
    schema = SCHEMAS[name]
    targets = [({"$ref": f"#/$defs/{key}"}, each) for key, each in schema["$defs"].items()]
    targets += [(field, field) for _, _, field in fields(name)]
    found = [
        (error.json_path, error.message)
        for target, holder in targets
        for part in [holder, *holder.get("anyOf", ())]
        for example in part.get("examples", ())
        for error in Draft202012Validator({"$defs": schema["$defs"], **target}).iter_errors(example)
    ]
    assert found == []


@pytest.mark.parametrize("name", CONFIGS)
def test_every_option_whose_type_does_not_say_enough_has_an_example(name: str) -> None:
    """An option whose default shows the form needs none, either."""
    definitions = SCHEMAS[name]["$defs"]
    without = [
        f"{struct}.{field}"
        for struct, field, schema in fields(name)
        if '"examples"' not in json.dumps(schema)
        and schema.get("default") in (None, "", [], {})
        and not all(says_enough(part) for part in parts(schema, definitions))
    ]
    assert without == []


@pytest.mark.parametrize("name", sorted(CONFIGS.keys() - NO_COMMAND))
def test_check_accepts_every_document(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for variable in json.dumps(SCHEMAS[name]).split('"env": "')[1:]:
        monkeypatch.setenv(variable.partition('"')[0], "whsec_c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0")
    Path("broker.json").write_text('{"sinks": [{"type": "statsd"}], "quarantine": {"path": "quarantine.jsonl"}}')
    Path("sample.jsonl").touch()
    Path("tokens.json").write_text('{"tokens": []}')
    schema = SCHEMAS[name]
    for example in schema["$defs"][schema["$ref"].rpartition("/")[2]].get("examples", ()):
        Path("config.json").write_text(json.dumps(example))
        done = CliRunner().invoke(main, ["check", "--for", CHECKED_FOR.get(name, name), "config.json"])
        assert done.exit_code == 0, f"{example}\n{done.output}"


@pytest.mark.parametrize("name", sorted(CONFIGS.keys() - set(NO_COMMAND)))
def test_every_config_has_an_example_document(name: str) -> None:
    schema = SCHEMAS[name]
    assert schema["$defs"][schema["$ref"].rpartition("/")[2]].get("examples"), name


def test_every_sink_has_an_example() -> None:
    assert [name for name in SINKS.builtin if not SINKS.load(name).examples] == []


@pytest.mark.parametrize("name", CONFIGS)
def test_every_number_with_a_unit_names_it(name: str) -> None:
    definitions = SCHEMAS[name]["$defs"]
    without = [
        f"{struct}.{field}: {row[-1]}"
        for struct, field, schema in fields(name)
        if any(part.get("type") in ("integer", "number") for part in schema.get("anyOf", [schema]))
        for row in [config_reference.field(field, schema, False, dict.fromkeys(definitions, ""), definitions)]
        if field not in UNITLESS and not row[4]
    ]
    assert without == []


def test_an_example_reaches_the_fields_that_it_has_values_for() -> None:
    """Given an example of a struct, then its fields have the values as theirs; a choice and a known value do not."""

    class Inner(msgspec.Struct):
        seconds: int | None = None

    class Outer(msgspec.Struct):
        examples = ({"inner": {"seconds": 7}, "names": ["a"], "is_on": True},)
        inner: Inner | None = None
        names: list[str] = []
        is_on: bool = False

    definitions = json.loads(write_schema(Outer, "urn:x", "x"))["$defs"]
    assert definitions["Outer"]["examples"] == list(Outer.examples)
    assert definitions["Outer"]["properties"]["names"]["examples"] == [["a"]]
    assert "examples" not in definitions["Outer"]["properties"]["is_on"]
    assert definitions["Inner"]["properties"]["seconds"]["examples"] == [7]
