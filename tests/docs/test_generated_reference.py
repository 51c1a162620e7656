"""The generated pages of the reference: every option, every field of a config, every public name."""

import importlib
import json
import re
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from balog import cli
from balog.tap.verify.rules import CHECKS
from tests.ci_scripts import ci_script

ROOT = Path(__file__).resolve().parents[2]

COMMANDS = dict(ci_script("docs/command_reference").pages())
config_reference = ci_script("docs/config_reference")
CONFIGS = dict(config_reference.pages(ROOT))
python_reference = ci_script("docs/python_reference")
PYTHON = dict(python_reference.pages())
generated_tables = ci_script("docs/generated_tables")


def helps(path: list[str]) -> list[str]:
    """Return the help of a command and of those below it, as users see them."""
    shown = CliRunner().invoke(cli.main, [*path, "--help"]).output
    command = cli.main.get_command(click.Context(cli.main), path[0])
    for name in path[1:]:
        assert isinstance(command, click.Group)
        command = command.commands[name]
    below = sorted(command.commands) if isinstance(command, click.Group) else []
    return [shown, *(text for name in below for text in helps([*path, name]))]


class TestCommands:
    @pytest.mark.parametrize("name", sorted(cli.COMMANDS))
    def test_the_page_has_every_option_that_help_shows(self, name: str) -> None:
        options = {option for text in helps([name]) for option in re.findall(r"^  +(?:-\w, )?(--[\w-]+)", text, re.M)}
        page = COMMANDS[f"reference/cli/{name}.md"]

        assert {option for option in options - {"--help"} if f"`{option}`" not in page} == set()

    def test_every_command_is_listed(self) -> None:
        assert all(f"({name}.md)" in COMMANDS["reference/cli/index.md"] for name in cli.COMMANDS)


class TestConfigs:
    @pytest.mark.parametrize("name", config_reference.SCHEMAS)
    def test_the_page_has_every_field_or_a_link_to_it(self, name: str) -> None:
        schema = json.loads((ROOT / f"schemas/config/{name}.json").read_bytes())
        page = CONFIGS[f"reference/configs/{name}.md"]

        for key, definition in schema["$defs"].items():
            rows = page.partition(f"{{ #{key.lower()} }}")[2].partition("\n## ")[0]
            if rows:
                assert all(f"| `{each}` |" in rows for each in definition.get("properties", {}) if each[0] != "$"), key
            else:
                assert re.search(rf"\]\([\w./]+\.md#{key.lower()}\)", page) or is_inside_another(key, schema, page)

    def test_every_field_has_a_meaning(self) -> None:
        without = [
            (path, row)
            for path, page in CONFIGS.items()
            for row in re.findall(r"^\| `.*$", page, re.M)
            if row.endswith("|  |")
        ]
        assert without == []


def is_inside_another(key: str, schema: Any, page: str) -> bool:
    """Whether only parts that are described on another page refer to this one."""
    users = [name for name, each in schema["$defs"].items() if f'"#/$defs/{key}"' in json.dumps(each)]
    return all(f"{{ #{name.lower()} }}" not in page for name in users)


class TestPython:
    @pytest.mark.parametrize("name", python_reference.MODULES)
    def test_the_page_has_every_public_name(self, name: str) -> None:
        members = vars(importlib.import_module(name))
        own = [each for each, value in members.items() if getattr(value, "__module__", "") == name and each[0] != "_"]
        public = {each for each in members.get("__all__", own) if each[:2] != "__"}
        page = PYTHON[f"reference/python/{name}.md"]
        described = set(re.findall(r"^::: \S*\.(\w+)$", page, re.M)) | set(re.findall(r"^- \[`(\w+)`\]", page, re.M))

        assert public <= described


def test_each_table_of_a_page_is_written_from_the_code() -> None:
    pages = [page.read_text(encoding="utf-8") for page in (ROOT / "docs").rglob("*.md")]
    marked = {name for page in pages for name in generated_tables.MARK.findall(page)}
    filled = generated_tables.fill("\n".join(f"<!-- table: {name} -->" for name in marked))

    assert marked == set(generated_tables.TABLES)
    assert "<!--" not in filled
    assert "| `pipe_logs` | counter | LOG messages. |" in filled
    components = set(re.findall(r"^\| `([a-z]+)_\w+` \| (?:counter|gauge) \|", filled, re.M))
    assert components == {"pipe", "run", "sink", "engine", "consumer", "service", "job"}
    assert all(f"| `{name}` |" in filled for name in CHECKS)
    assert "PyPI token" in filled
