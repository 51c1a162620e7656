"""The blocks of the how-to pages for authors print what the pages show."""

from itertools import pairwise
from pathlib import Path

import pytest

from tests.documentation import blocks, docs_page, matches, paste

RUN = (
    "declare-a-payload-type", "redact-more-values", "tap-new", "tap-from-openapi", "write-a-tap",
    "sync-child-records", "read-a-change-log", "read-two-streams-at-once", "run-streams-without-a-tap",
    "keep-a-bookmark-for-each-account", "correct-quarantined-records", "log-in-processes", "log-in-lambda",
    "log-in-jupyter", "testing", "test-handlers", "test-with-the-event-service",
    "log-with-sentry",
)  # fmt: skip


@pytest.mark.parametrize("page", RUN)
def test_the_blocks_of_a_page_print_what_it_shows(page: str, tmp_path: Path) -> None:
    page_blocks = blocks(docs_page(f"{page}.md").read_text(encoding="utf-8"))
    printed = paste(page_blocks, tmp_path)
    for block, following in pairwise(page_blocks):
        if block in printed and following.language == "text":
            assert matches(following.text, printed[block]), printed[block]
