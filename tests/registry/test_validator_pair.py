"""The two validators of JSON Schema side by side: where they disagree, it is reported as a defect."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from balog.cli import main
from balog.registry import Schema, open_registry, validator_pair

SCHEMA = {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer", "minimum": 1}}}


class Lenient:
    """A validator with a defect."""

    def __init__(self, document: Any, formats: bool) -> None:
        """Accept any schema."""

    def is_valid(self, payload: Any) -> bool:
        return True


@pytest.fixture
def defect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validator_pair, "compile_schema", Lenient)


def registered(folder: Path) -> Any:
    with open_registry(str(folder)) as registry:
        return registry.register(Schema("order", "1.0.0", "json", json.dumps(SCHEMA).encode()))


def test_registering_a_version_on_which_both_agree_reports_nothing(tmp_path: Path):
    assert registered(tmp_path).defects == []


@pytest.mark.usefixtures("defect")
def test_registering_a_version_reports_payloads_on_which_the_validators_disagree(tmp_path: Path):
    defects = registered(tmp_path).defects

    assert defects
    assert all("this is a defect of balog" in line for line in defects)


@pytest.mark.usefixtures("defect")
def test_the_commands_report_such_a_defect(tmp_path: Path):
    (tmp_path / "1.0.0.json").write_text(json.dumps(SCHEMA))
    (tmp_path / "p.jsonl").write_text('{"cls_type": "order", "id": 1}\n{"cls_type": "order", "id": 0}\n')
    words = ["--registry", str(tmp_path / "r")]
    run = CliRunner().invoke
    register = run(main, ["schema", "register", str(tmp_path / "1.0.0.json"), "--type", "order", *words])
    validate = run(main, ["schema", "validate", "--reference", str(tmp_path / "p.jsonl"), *words])
    plain = run(main, ["schema", "validate", str(tmp_path / "p.jsonl"), *words])

    assert "defect: on " in register.output
    assert validate.exit_code == 1
    assert "line 2: $.id: is less than 1" in validate.output
    assert "line 2: $: jsonschema-rs calls it valid, jsonschema does not; this is a defect" in validate.output
    assert "line 1" not in validate.output
    assert "defect" not in plain.output


def test_the_types_that_come_with_balog_have_no_defect():
    with open_registry() as registry:
        for type in registry.types():
            for version in registry.versions(type):
                assert registry.defects(registry.get(type, version)) == []
