"""Pages about streams of taps: their files are written, their commands run and print what the page shows."""

from pathlib import Path

import pytest

from tests.documentation import DOCS, blocks, docs_page, run_page


@pytest.mark.parametrize(
    "page",
    ["bookmarks", "find-streams-at-run-time", "write-a-file-tap", "write-a-database-tap", "write-a-rest-tap"],
)
def test_its_blocks_run_and_print_what_it_shows(page: str, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(DOCS.parent / "examples")

    printed = run_page(f"{page}.md", tmp_path)

    shown = blocks(docs_page(f"{page}.md").read_text(encoding="utf-8"))
    assert printed == [block.text for block in shown if block.language == "text"]
