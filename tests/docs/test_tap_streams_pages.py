"""Pages about streams of taps: their files are written, their commands run and print what the page shows."""

from pathlib import Path

import pytest

from balog.tap.endpoints import file_stream
from balog.tap.patterns import file_formats
from balog.tap.streams import discovery
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


def test_the_limits_of_a_discovery_are_the_code_s() -> None:
    words = " ".join(docs_page("tap-discovery.md").read_text(encoding="utf-8").split())

    assert f"at most {discovery.MAX_STREAMS:,} streams. A name has at most {discovery.MAX_NAME} printable" in words


def test_the_limits_of_files_are_the_code_s() -> None:
    words = " ".join(docs_page("tap-files.md").read_text(encoding="utf-8").split())

    assert f"{file_stream.MAX_FILES:,} files a stream" in words
    assert f"{file_formats.MAX_LINE >> 20} MiB a line of JSON" in words
    assert f"{file_formats.MAX_DOCUMENT >> 20} MiB a JSON document or workbook" in words
    assert f"`max_bytes` ({file_formats.ReadOptions.max_bytes >> 30} GiB)" in words
