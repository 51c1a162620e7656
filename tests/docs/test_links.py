"""Links between the pages lead somewhere: to a file of the checkout, and to a heading in it."""

from pathlib import Path

import pytest

from tests.ci_scripts import ci_script

links = ci_script("links")


@pytest.mark.parametrize("page", links.PAGES, ids=lambda page: str(page.relative_to(links.ROOT)))
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    assert links.lost(page) == []


@pytest.mark.parametrize("page", links.PAGES, ids=lambda page: str(page.relative_to(links.ROOT)))
def test_the_text_before_a_block_names_its_file(page: Path) -> None:
    assert links.unnamed(page) == []


def test_the_index_lists_all_pages() -> None:
    assert links.is_listed(links.ROOT / "docs"), "run python .ci/docs/page_list.py"


def test_a_link_to_nowhere_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "b.md").write_text("# A heading, `with code`\n")
    page = tmp_path / "a.md"
    page.write_text("# Here\n[](b.md) [](b.md#a-heading-with-code) [](#here) [](https://x.org) [](c.md) [](b.md#no)\n")
    monkeypatch.setattr(links, "ROOT", tmp_path)
    monkeypatch.setattr(links, "PAGES", [page])

    assert links.main() == 1
    assert capsys.readouterr().out == "a.md: c.md leads nowhere\na.md: b.md#no leads nowhere\n"


def test_a_block_without_its_file_s_name_before_it_is_found(tmp_path: Path) -> None:
    page = tmp_path / "a.md"
    named = "Save `a.py`:\n```python a.py\n```\n`types/b.json`\n```json types/b.json\n```\n"
    page.write_text(f"{named}```sh\n```\n```json c.json\n```\n")
    assert links.unnamed(page) == ["c.json"]
