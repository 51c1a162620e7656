"""The page of guarantees names tests that exist."""

import re
from pathlib import Path

import pytest

from tests.documentation import docs_page

ROOT = Path(__file__).parents[2]
PAGE = docs_page("guarantees.md").read_text()
NAMED = sorted(set(re.findall(r"`((?:tests|balog/testing)/[\w/]+\.py)(?:::(\w+))?`", PAGE)))


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_a_named_test_exists(path: str, name: str) -> None:
    text = (ROOT / path).read_text()
    assert not name or re.search(rf"^\s*(?:async )?def {name}\(", text, re.MULTILINE)


def test_every_row_names_a_test() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| promise |")]
    assert rows
    assert [row for row in rows if not re.search(r"`(?:tests|balog/testing)/\S+`[^|]*\|$", row)] == []
