"""The how-to pages for authors fit on a screen, and their blocks print what the pages show."""

from itertools import pairwise
from pathlib import Path

import pytest

from tests.documentation import DOCS, blocks, docs_page, matches, paste, screen_lines

MAX_LINES = 62
RUN = (
    "structlog", "declare-a-payload-type", "redact-more-values", "tap-new", "tap-from-openapi", "write-a-tap",
    "sync-child-records", "read-a-change-log", "read-two-streams-at-once", "run-streams-without-a-tap",
    "keep-a-bookmark-for-each-account", "correct-quarantined-records", "log-in-processes", "log-in-lambda",
    "log-in-jupyter", "testing", "test-handlers", "test-with-the-event-service",
    "read-xml", "stdlib", "log-with-sentry",
)  # fmt: skip
PAGES = (
    "add-a-command", "add-a-filter", "coming-from-balog-1.2", "correct-quarantined-records",
    "declare-a-payload-type", "find-streams-at-run-time", "handlers-from-balog-1.2", "install",
    "keep-a-bookmark-for-each-account", "log-from-a-tap", "log-in-airflow", "log-in-celery", "log-in-dagster",
    "log-in-fastapi", "log-in-flask", "log-in-jupyter", "log-in-lambda", "log-in-processes", "log-in-pyspark",
    "log-with-sentry", "page-through-an-api", "read-a-change-log", "read-by-time-windows",
    "read-two-streams-at-once", "read-xml", "redact-more-values", "retry-requests",
    "run-streams-without-a-tap", "send-requests-in-parallel", "sign-in-with-oauth", "stdlib", "structlog",
    "sync-child-records", "tap-from-openapi", "tap-new", "test-a-sink", "test-handlers",
    "test-with-the-event-service", "testing", "verify", "verify-in-ci", "verify-with-pytest", "where-it-runs",
    "write-a-bulk-tap", "write-a-database-tap", "write-a-dialect", "write-a-file-tap", "write-a-graphql-tap",
    "write-a-hook", "write-a-ledger", "write-a-redaction-rule", "write-a-rest-tap", "write-a-sink",
    "write-a-tap", "write-a-topic-backend",
)  # fmt: skip


@pytest.mark.parametrize("page", PAGES)
def test_a_page_fits_on_a_screen(page: str) -> None:
    text = (DOCS / "how-to" / f"{page}.md").read_text(encoding="utf-8")
    assert screen_lines(text) <= MAX_LINES
    assert text.splitlines()[2].startswith("For ")
    assert "You need" in text
    assert "balog-events[" not in text


@pytest.mark.parametrize("page", RUN)
def test_the_blocks_of_a_page_print_what_it_shows(page: str, tmp_path: Path) -> None:
    page_blocks = blocks(docs_page(f"{page}.md").read_text(encoding="utf-8"))
    printed = paste(page_blocks, tmp_path)
    for block, following in pairwise(page_blocks):
        if block in printed and following.language == "text":
            assert matches(following.text, printed[block]), printed[block]
