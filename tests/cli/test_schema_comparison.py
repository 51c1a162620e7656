"""``balog schema check``: exit codes, both outputs, registries and stored events."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from balog.cli import main

OLD: dict[str, Any] = {
    "type": "object",
    "required": ["cls_type"],
    "properties": {"cls_type": {"const": "order"}, "price": {"type": "number"}},
}


def with_properties(**properties: Any) -> dict[str, Any]:
    return {**OLD, "properties": {**OLD["properties"], **properties}}


@pytest.fixture
def types(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "order").mkdir()
    for version, document in {
        "1.0.0": OLD,
        "1.0.1": with_properties(note={"type": "string"}),
        "1.1.0": with_properties(note={"type": "string"}),
        "1.2.0": with_properties(price={"type": "integer"}),
    }.items():
        (tmp_path / "order" / f"{version}.json").write_text(json.dumps(document))
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["schema", *arguments])


def test_what_is_compatible_says_what_changed_and_the_least_version(types: Path) -> None:
    done = run("check", "order/1.0.0.json", "order/1.1.0.json")

    assert done.exit_code == 0
    assert re.search(r"^json +fine +\$\.note +optional property 'note' was added$", done.stdout, re.MULTILINE)
    assert "compatible (backward); the least version is 1.1.0" in done.stderr


def test_what_breaks_is_named(types: Path) -> None:
    done = run("check", "order/1.0.0.json", "order/1.2.0.json")

    assert done.exit_code == 1
    assert re.search(r"^json +undecided +\$\.price +type number became integer$", done.stdout, re.MULTILINE)
    assert "the least version is 2.0.0" in done.stderr


@pytest.mark.parametrize("names", [("bad.json", "order/1.0.0.json"), ("order/1.0.0.json", "bad.json")])
def test_a_schema_that_is_none_is_named_with_its_place(types: Path, names: tuple[str, str]) -> None:
    (types / "bad.json").write_text(json.dumps(with_properties(note={"pattern": "(?<=x)y"})))
    done = run("check", *names)

    assert done.exit_code == 2
    assert done.stderr == (
        "balog schema: bad.json: $.properties.note.pattern: is not a valid pattern in Rust's syntax, "
        "which has no look-around and no back reference\n"
    )


def test_too_small_a_step_is_refused(types: Path) -> None:
    done = run("check", "order/1.0.0.json", "order/1.0.1.json")

    assert done.exit_code == 1
    assert "1.0.1 is too small a step" in done.stderr


def test_the_mode_counts(types: Path) -> None:
    assert run("check", "order/1.0.0.json", "order/1.2.0.json", "--mode", "forward").exit_code == 0


def test_a_draft_is_held_against_what_a_registry_has(types: Path) -> None:
    draft = types / "draft.json"
    draft.write_text(json.dumps(with_properties(note={"type": "integer"}, price={"type": "integer"})))

    done = run("check", "draft.json", "--type", "order", "--registry", ".")
    transitive = run("check", "draft.json", "--type", "order", "--registry", ".", "--mode", "backward_transitive")

    assert done.exit_code == 0
    assert transitive.exit_code == 1
    assert "type string became integer (since 1.1.0)" in transitive.stdout


def test_versions_of_a_registry_are_compared(types: Path) -> None:
    assert run("check", "order/1.0.0", "order/1.1.0", "--registry", ".").exit_code == 0
    assert run("check", "order/1.0.0", "order/1.2.0", "--registry", ".").exit_code == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "nosuch.json", "order/1.0.0.json"],
        ["check", "order/1.0.0.json", "order/1.0.0.json", "order/1.0.0.json"],
        ["check", "draft.json"],
        ["check", "broken.json", "order/1.0.0.json"],
    ],
)
def test_wrong_use_is_one_line_and_exit_2(types: Path, arguments: list[str]) -> None:
    (types / "draft.json").write_text("{}")
    (types / "broken.json").write_text('{"type": 7}')

    done = run(*arguments)

    assert done.exit_code == 2
    assert len(done.stderr.splitlines()) == 1
