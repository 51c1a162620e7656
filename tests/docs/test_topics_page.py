"""The page on topics: its blocks run as they are, in order, in one folder, and it knows every part and option."""

import re
from pathlib import Path

import pytest

from balog.cli.topics import command
from tests.documentation import docs_page, run_task

PAGE = "".join(docs_page(name).read_text(encoding="utf-8") for name in ("topics-command.md", "topics.md"))


def test_the_blocks_run(tmp_path: Path) -> None:
    printed = [*run_task("topics-command.md", tmp_path), *run_task("topics.md", tmp_path)]
    assert len(printed) == 5
    assert (tmp_path / "archive" / "orders").is_dir()
    assert (tmp_path / "topics" / "orders-again.sqlite").is_file()


@pytest.mark.parametrize("name", sorted(command.commands))
def test_every_part_is_on_the_page(name: str) -> None:
    assert re.search(rf"`{name}[` ]|balog topics {name} ", PAGE)
