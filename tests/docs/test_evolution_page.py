"""The page on versions: its Python runs, its commands are taken, and its modes are all of them."""

import re
from pathlib import Path
from typing import get_args

from balog.cli.schema_checking import check, diff
from balog.registry.comparing import Mode

PAGE = (Path(__file__).parents[2] / "docs" / "evolution.md").read_text(encoding="utf-8")


def test_its_python_runs() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)

    assert blocks
    for block in blocks:
        exec(block, {})


def test_its_commands_have_options_that_there_are() -> None:
    commands = re.findall(r"^balog schema (check|diff)(.*)$", PAGE, re.MULTILINE)

    assert commands
    for name, rest in commands:
        command = {"check": check, "diff": diff}[name]
        known = {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
        assert set(re.findall(r"--[a-z-]+", rest)) <= known


def test_its_modes_are_all_of_them() -> None:
    table = PAGE.split("## Modes")[1].split("##")[0]

    assert set(re.findall(r"`([a-z_]+)`", table)) == set(get_args(Mode))
