"""Values of a config from the environment and from files."""

import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from balog.common.config import load
from balog.common.config.variables import substitute_environment
from balog.common.errors import ConfigError, ConfigProblems
from balog.common.secrets import Secret


class Part(Struct, forbid_unknown_fields=True):
    host: str = ""
    port: int = 1
    ratio: float | None = None
    strict: bool = False
    key: Secret | None = None
    tags: list[str] = []
    labels: dict[str, str] = {}


class Whole(Struct, forbid_unknown_fields=True):
    part: Part


@pytest.fixture(autouse=True)
def variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"T_HOST": "db", "T_PORT": "5432", "T_EMPTY": "", "T_LOOP": "${T_HOST}"}.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("${T_HOST}", "db"),
        ("a${T_HOST}b${T_PORT}", "adbb5432"),
        ("${T_EMPTY}", ""),
        ("${T_EMPTY:-x}", "x"),
        ("${T_NONE:-}", ""),
        ("${T_NONE:-a:-b}", "a:-b"),
        ("$${T_HOST}", "${T_HOST}"),
        ("$T_HOST $ {a}", "$T_HOST $ {a}"),
        ("${T_LOOP}", "${T_HOST}"),
    ],
)
def test_variables_in_a_text(text: str, result: str) -> None:
    assert substitute_environment(text) == (result, "")


@pytest.mark.parametrize("text", ["${}", "${T HOST}", "${T_HOST", "${1}", "${T_NONE}", "${T_HOST:x}"])
def test_what_is_no_variable_has_a_reason(text: str) -> None:
    assert substitute_environment(text)[1]


@given(st.lists(st.sampled_from(["${T_HOST}", "${T_NONE:-d}", "$${", "$", "{", "}", "x", "${T_EMPTY:-${"]), max_size=6))
def test_replacing_follows_the_shell(parts: list[str]) -> None:
    """The oracle replaces one piece after the other, from the left."""
    text, expected, rest = "".join(parts), "", "".join(parts)
    valid = True
    while rest:
        if rest.startswith("$${"):
            expected, rest = expected + "${", rest[3:]
        elif rest.startswith("${"):
            match = re.match(r"\$\{(\w+)(?::-([^}]*))?\}", rest)
            if match is None:
                valid = False
                break
            value = os.environ.get(match[1], "") or match[2]
            valid &= value is not None
            expected, rest = expected + (value or ""), rest[match.end() :]
        else:
            expected, rest = expected + rest[0], rest[1:]
    result, reason = substitute_environment(text)
    assert (not reason) == valid
    if valid:
        assert result == expected


def loaded(tmp_path: Path, text: str, name: str = "c.yaml") -> Any:
    (tmp_path / name).write_text(text)
    return load(tmp_path / name, Whole).part


def test_a_variable_outside_quotes_has_the_type_that_its_text_has(tmp_path: Path) -> None:
    part = loaded(
        tmp_path, "part:\n  host: '${T_HOST}'\n  port: ${T_PORT}\n  strict: ${T_NONE:-true}\n  tags:\n  - a${T_PORT}"
    )
    assert part == Part("db", 5432, None, True, None, ["a5432"])
    with pytest.raises(ConfigError, match="expected `int`, got `str`"):
        loaded(tmp_path, "part: {port: '${T_PORT}'}")


def test_a_variable_makes_no_structure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("T_HOST", "x, port: 7}\nother: {")
    assert loaded(tmp_path, "part:\n  host: ${T_HOST}") == Part("x, port: 7}\nother: {")


@pytest.mark.parametrize("name", ["c.json", "c.yaml"])
def test_references_stand_for_texts_numbers_and_booleans(tmp_path: Path, name: str) -> None:
    (tmp_path / "ratio").write_text("0.5\n")
    (tmp_path / "strict").write_text("true")
    part = loaded(
        tmp_path,
        f"""{{"part": {{"host": {{"env": "T_HOST"}}, "port": {{"env": "T_PORT"}},
        "ratio": {{"file": "{tmp_path}/ratio"}}, "strict": {{"file": "{tmp_path}/strict"}},
        "key": {{"env": "T_HOST"}}, "tags": ["a", {{"env": "T_PORT"}}], "labels": {{"env": "T_HOST"}}}}}}""",
        name,
    )
    assert part == Part("db", 5432, 0.5, True, Secret(env="T_HOST"), ["a", "5432"], {"env": "T_HOST"})


def test_a_value_that_does_not_fit_is_named_without_the_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("T_SECRET", "hunter2")
    with pytest.raises(ConfigProblems) as error:
        loaded(tmp_path, "part: {port: {env: T_SECRET}, strict: {env: T_SECRET}, host: {env: T_NONE}}")
    said = {one.path: one.reason for one in error.value.problems}
    assert "hunter2" not in str(said)
    assert said["$.part.port"] == "the value in the environment variable T_SECRET does not fit here"
    assert "T_NONE is not set" in said["$.part.host"]
    assert len(error.value.problems) == 3


def test_a_document_for_another_machine_keeps_its_variables(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("part: {host: '${T_HOST}'}")
    assert load(tmp_path / "c.yaml", Whole, variables=False).part.host == "${T_HOST}"
    (tmp_path / "c.yaml").write_text("part: {host: {env: T_HOST}}")
    with pytest.raises(ConfigError, match="expected `str`, got `object`"):
        load(tmp_path / "c.yaml", Whole, variables=False)


def test_a_missing_variable_is_one_problem(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("part:\n  host: ${T_NONE}\n  port: ${T_HOST\n")
    with pytest.raises(ConfigProblems) as caught:
        load(file, Whole)
    assert [problem.path for problem in caught.value.problems] == ["$.part.host", "$.part.port"]
