"""The documentation site has a place for each page, and loads nothing from elsewhere."""

from pathlib import Path

from tests.ci_scripts import ci_script

navigation = ci_script("docs/navigation")
scripts = ci_script("docs/scripts")

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_each_page_has_a_part() -> None:
    assert navigation.parts([str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")])


def test_each_how_to_page_and_reference_has_a_group() -> None:
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    how_to = index.partition("## How-to guides")[2].partition("## Reference")[0]
    assert "**All parts**" not in how_to


def test_scripts_do_not_come_from_a_cdn() -> None:
    page = f'<head><script src="{scripts.FILE_SEARCH_URL}"></script></head><pre class="mermaid">graph LR</pre>'
    loaded = scripts.load(page, "a/b.html")
    assert '<script src="../assets/iframe-worker.js"></script>' in loaded
    assert '<script src="../assets/mermaid.min.js"></script>\n</head>' in loaded
    assert scripts.load("<head></head>text", "a/b.html") == "<head></head>text"
