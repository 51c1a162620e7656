"""What ``--help`` says can be read in a terminal of 80 columns."""

import os
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from balog.cli import COMMANDS, main


def commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from commands(found, (*path, name))


@pytest.mark.parametrize("path", list(commands(main)), ids=lambda path: " ".join(path) or "balog")
def test_no_line_about_a_command_is_cut_short(path: tuple[str, ...]) -> None:
    done = CliRunner().invoke(main, [*path, "--help"], terminal_width=80)
    assert done.exit_code == 0, done.output
    listed = done.output.partition("\nCommands:\n" if path else "\nLog:\n")[2]
    assert "..." not in (listed.partition("\n\n")[0] if path else listed)


def test_every_command_is_in_one_group_and_every_group_has_an_example() -> None:
    shown = CliRunner().invoke(main, ["--help"], terminal_width=200).output
    assert [shown.count(f"  {name.ljust(max(map(len, COMMANDS)))}  ") for name in COMMANDS] == [1] * len(COMMANDS)
    assert shown.count("\n  $ ") == 7


def test_a_shell_completes_commands_and_their_subcommands() -> None:
    def completed(words: str) -> list[str]:
        asked = {"_BALOG_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        command = [sys.executable, "-c", "from balog.cli import main; main(prog_name='balog')"]
        done = subprocess.run(command, env={**os.environ, **asked}, capture_output=True, text=True, timeout=60)
        return [line.removeprefix("plain,") for line in done.stdout.splitlines()]

    assert completed("balog top") == ["topics"]
    assert completed("balog topics pe") == ["peek"]
