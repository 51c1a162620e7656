"""Each command of balog that a page shows exists: its options are the command's, and those of a block can be parsed."""

import itertools
import re
import shlex
from pathlib import Path

import click
import pytest

from balog.cli import main
from tests.documentation import DOCS, blocks

PAGES = [DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md"))]
INLINE = re.compile(r"`balog ([a-z][^`\n|]*)`")


def resolve(words: list[str]) -> tuple[click.Command, list[str]]:
    """Return the command that words begin with, and the words that follow its name."""
    command: click.Command = main
    while isinstance(command, click.Group) and words:
        if words[0] not in command.list_commands(click.Context(command)):  # `balog watch` has a default
            words = ["backtest" if {"--tables", "--backtest"} & {*words} else "run", *words]
        found = command.get_command(click.Context(command), words[0])
        assert found is not None, words
        command, words = found, words[1:]
    return command, words


def commands_of(script: str) -> list[list[str]]:
    """Return the arguments of each balog that a script runs, up to an operator of the shell."""
    found, line = list[list[str]](), ""
    for part in script.splitlines():
        line = f"{line}\n{part}" if line else part
        try:
            lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
            lexer.whitespace_split = True
            words = list(lexer)
        except ValueError:  # a quotation goes on in the next line
            continue
        line = ""
        starts = [place for place, word in enumerate(words) if word == "balog" and _ends(words[place - 1 : place])]
        found += [list(itertools.takewhile(lambda word: not _ends([word]), words[place + 1 :])) for place in starts]
    return found


def _ends(words: list[str]) -> bool:
    return not words or set(words[0]) <= set("();<>|&")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_page_can_be_parsed(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    monkeypatch.chdir(tmp_path)
    for block in blocks(text):
        for given in commands_of(block.text) if block.language == "sh" else ():
            command, words = resolve(given)
            try:
                command.make_context("balog", words)
            except click.BadParameter as error:
                if "No such file" not in str(error):
                    raise
    for line in INLINE.findall(re.sub(r"^```.*?^```[ ]*$", "", text, flags=re.MULTILINE | re.DOTALL)):
        command, words = resolve(line.partition(" -- ")[0].split())
        options = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
        assert {word for word in words if re.fullmatch(r"--[a-z-]+", word)} <= options | {"--help"}, line
