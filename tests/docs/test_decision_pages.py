"""The pages of decisions: they have one form, fit on a screen, and the first page lists them all."""

import re
from pathlib import Path

import pytest

from tests.documentation import DOCS

RECORD, *DECISIONS = sorted(DOCS.glob("decisions/*.md"))


def test_the_first_page_lists_all_decisions_with_their_titles() -> None:
    rows = re.findall(r"^\| \[(\d{4})\]\((\S+)\) \| (.+) \|$", RECORD.read_text(encoding="utf-8"), re.MULTILINE)
    titles = [page.read_text(encoding="utf-8").partition("\n")[0].partition(". ")[2] for page in DECISIONS]
    assert rows == [(page.name[:4], page.name, title) for page, title in zip(DECISIONS, titles, strict=True)]
    assert [int(number) for number, _, _ in rows] == list(range(1, len(DECISIONS) + 1))


@pytest.mark.parametrize("page", DECISIONS, ids=lambda page: page.stem)
def test_a_decision_has_the_four_parts_and_a_status(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Context", "Decision", "Consequences", "Alternatives"]
    assert re.search(r"^Status: (accepted|replaced by \[\d{4}\]\(\S+\))$", text, re.MULTILINE)
    assert len(text.splitlines()) <= 40
