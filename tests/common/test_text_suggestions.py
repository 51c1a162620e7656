"""Tests of ``balog.common.text``, and that commands use it."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from balog.cli import main
from balog.common.text import nearest, suggest


def test_the_nearest_name_is_found_in_whatever_case() -> None:
    assert nearest("MAXFILES", ["form", "maxFile"]) == "maxFile"
    assert nearest("xyz", ["form", "maxFile"]) is None


@pytest.mark.parametrize(
    ("limit", "end"), [(None, "; there are a, b, c"), (3, "; there are a, b, c"), (2, "; there are a, b, …"), (0, "")]
)
def test_without_a_near_name_the_known_ones_are_listed(limit: int | None, end: str) -> None:
    assert suggest("nothing", ["a", "b", "c"], limit) == end
    assert suggest("nothing", [], limit) == ""


def test_a_near_name_is_suggested() -> None:
    assert suggest("sinse", ["since", "until"]) == "; did you mean 'since'?"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["brokr"], "Error: No such command 'brokr'. Did you mean 'broker'?"),
        (["schema", "lst"], "Error: No such command 'lst'. Did you mean 'list'?"),
        (["topics", "xyzzy"], "Error: No such command 'xyzzy'."),
    ],
)
def test_an_unknown_command_names_the_one_that_was_meant(arguments: list[str], line: str) -> None:
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1] == line


def test_an_unknown_option_names_the_one_that_was_meant() -> None:
    done = CliRunner().invoke(main, ["broker", "--confg", "x"])
    assert done.exit_code == 2
    assert "Did you mean" in done.stderr.splitlines()[-1]
    assert "--config" in done.stderr.splitlines()[-1]
