"""Each tutorial runs as it is written: its blocks pasted into one terminal, in order, in an empty folder."""

import re
import shutil
import socket
from itertools import pairwise
from pathlib import Path

import pytest

from tests.documentation import DOCS, blocks, matches, paste

PAGES = sorted((DOCS / "tutorials").glob("*.md"))
PORTS = re.compile(r"(?<=[:( ])8\d{3}\b")


def with_free_port(text: str) -> str:
    """Return the page with a port in place of its own that no other test has."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return PORTS.sub(str(found.getsockname()[1]), text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_runs_and_prints_what_it_shows(page: Path, tmp_path: Path) -> None:
    if "\ncurl " in page.read_text(encoding="utf-8") and shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    found = blocks(with_free_port(page.read_text(encoding="utf-8")))
    printed = paste(found, tmp_path)
    for command, shown in pairwise(found):
        if shown.language == "text" and not shown.name:
            assert command in printed, f"{shown} does not follow a command"
            assert matches(shown.text, printed[command]), (
                f"{page.name}: {shown} shows\n{shown.text}\nnot\n{printed[command]}"
            )


def test_tutorials_share_no_port() -> None:
    ports = [port for page in PAGES for port in set(PORTS.findall(page.read_text(encoding="utf-8")))]
    assert len(ports) == len(set(ports)) == 2


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_begins_with_its_readers_and_ends_with_next_steps(page: Path) -> None:
    title, _, begin, *_ = page.read_text(encoding="utf-8").split("\n")
    assert title.startswith("# ")
    assert begin.startswith("For ")
    assert "After it, you " in begin or "At the end, " in begin
    assert "](" in page.read_text(encoding="utf-8").partition("\n## Next steps\n")[2]
