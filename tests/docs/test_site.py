"""The hooks of the documentation site: links out of ``docs/``, Markdown as GitHub reads it, parts, Mermaid."""

import re
from pathlib import Path
from typing import ClassVar

import pytest

from tests.ci_scripts import ci_script

checkout = ci_script("docs/checkout")
github_markdown = ci_script("docs/github_markdown")
navigation = ci_script("docs/navigation")
page_list = ci_script("docs/page_list")
scripts = ci_script("docs/scripts")

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout: a page, files that it links to, and files that it does not."""
    for path, text in {
        "README.md": "[pages](docs/how-to/page.md) [code](examples/tap.py)",
        "docs/how-to/page.md": "[home](../../README.md) [a](../../examples/shop)\n```\n[no](../../LICENSE)\n```\n",
        "examples/tap.py": "",
        "examples/shop/README.md": "",
        "LICENSE": "",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    checkout.linked_files.cache_clear()
    return tmp_path


class TestCheckout:
    def test_linked_files(self, tree: Path) -> None:
        assert checkout.linked_files(tree) == ("README.md", "examples/shop/README.md", "examples/tap.py")

    def test_sections_of_the_readme_are_included_with_links_from_the_page(self, tree: Path) -> None:
        (tree / "README.md").write_text(
            "# T\n\n## A\n\n[a](docs/b.md#c) ![p](docs/p.svg)\n\n## B\n\n[l](LICENSE)\n\n## C\nno\n"
        )
        page = checkout.include_readme("# I\n\n<!-- README.md: A | B -->\n\nend\n", "index.md", tree)
        assert page == "# I\n\n## A\n\n[a](b.md#c) ![p](p.svg)\n\n## B\n\n[l](../LICENSE)\n\nend\n"

    @pytest.mark.parametrize(
        ("page", "link", "expected"),
        [
            ("how-to/page.md", "[a](../../README.md#log)", "[a](../project/README.md#log)"),
            ("how-to/page.md", "[a](../../examples/shop)", "[a](../project/examples/shop/README.md)"),
            ("how-to/page.md", "[a](../reference/sinks.md#b)", "[a](../reference/sinks.md#b)"),
            ("how-to/page.md", "[a](#here) [b](https://x.org/a)", "[a](#here) [b](https://x.org/a)"),
            ("project/README.md", "[a](docs/how-to/page.md)", "[a](../how-to/page.md)"),
            ("project/README.md", "![a](docs/pictures/a.svg)", "![a](../pictures/a.svg)"),
            ("project/README.md", "[a](LICENSE)", "[a](LICENSE)"),
            ("project/README.md", "[a](examples)", "a"),
            ("project/README.md", "```\n[a](docs/b.md)\n```\n", "```\n[a](docs/b.md)\n```\n"),
        ],
    )
    def test_links(self, tree: Path, page: str, link: str, expected: str) -> None:
        assert checkout.rewrite_links(link, page, tree) == expected


class TestGithubMarkdown:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("```python shop.py\nx\n```", '```{.python title="shop.py"}\nx\n```'),
            ("`shop.py`\n```python shop.py\nx\n```", '```{.python title="shop.py"}\nx\n```'),
            ("```sh\nx\n```", "```sh\nx\n```"),
            ("```sh spark\nx\n```", "```sh\nx\n```"),
            ("- a\n  - b\n  - c\n\nd", "- a\n    - b\n    - c\n\nd"),
            ("1. a\n   ```sh\n   x\n   ```\n2. b", "1. a\n    ```sh\n    x\n    ```\n2. b"),
            ("```yaml\n- a\n  - b\n```", "```yaml\n- a\n  - b\n```"),
            ("a\n  b", "a\n  b"),
        ],
    )
    def test_what_python_markdown_reads_differently(self, text: str, expected: str) -> None:
        assert github_markdown.convert(text) == expected


class TestNavigation:
    def test_pages_and_folders_in_order(self) -> None:
        pages = [
            "reference/b.md",
            "index.md",
            "reference/cli/run.md",
            "reference/a.md",
            "how-to/index.md",
            "how-to/a.md",
        ]

        assert navigation.parts(pages) == [
            {"Home": "index.md"},
            {"How-to guides": ["how-to/index.md", "how-to/a.md"]},
            {"Reference": ["reference/a.md", "reference/b.md", {"Commands": ["reference/cli/run.md"]}]},
        ]

    def test_a_page_in_no_part(self) -> None:
        with pytest.raises(ValueError, match=r"no part of the site in .* has lost/a\.md"):
            navigation.parts(["lost/a.md"])

    def test_each_page_of_this_project_has_a_part(self) -> None:
        docs = ROOT / "docs"

        assert navigation.parts([str(page.relative_to(docs)) for page in docs.rglob("*.md")])


class TestPageList:
    PAGES: ClassVar = {
        "index.md": f"# T\n\n{page_list.MARK}\nold\n",
        "tutorials/a.md": "# A\n\nFor [readers](b.md).\nAt the end, you have\nit. More.\n",
        "how-to/keep-order.md": "# Keep `order`\n\nFor all. After this page, events have an order.\n",
        "how-to/odd.md": "# Odd\n\nNothing.\n",
        "reference/logger.md": "# The logger\n\nFor users: all options.\n",
    }

    @pytest.fixture
    def docs(self, tmp_path: Path) -> Path:
        for name, text in self.PAGES.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text)
        return tmp_path

    def test_pages_by_kind_and_group(self, docs: Path) -> None:
        text = page_list.with_list(docs)
        assert [line for line in text.splitlines() if line.startswith(("#", "- ", "**"))] == [
            "# T", "## Tutorials", "- [A](tutorials/a.md)",
            "## How-to guides", "**Act**", "- [Keep `order`](how-to/keep-order.md)",
            "**All parts**", "- [Odd](how-to/odd.md)",
            "## Reference", "**Log**", "- [The logger](reference/logger.md)",
            "## Explanation", "## Internals", "## Decisions",
        ]  # fmt: skip
        assert "old" not in text

    def test_the_site_shows_what_each_page_is_for(self, docs: Path) -> None:
        items = re.findall(r"^- .*", page_list.with_purposes(page_list.with_list(docs), docs), re.MULTILINE)
        assert items == [
            "- [A](tutorials/a.md): You have it.",
            "- [Keep `order`](how-to/keep-order.md): Events have an order.",
            "- [Odd](how-to/odd.md)",
            "- [The logger](reference/logger.md): All options.",
        ]

    def test_each_how_to_page_and_reference_has_a_group(self) -> None:
        index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
        how_to = index.partition("## How-to guides")[2].partition("## Reference")[0]
        assert "**All parts**" not in how_to


class TestScripts:
    def test_only_a_page_with_a_picture_loads_mermaid(self) -> None:
        page = '<head></head><pre class="mermaid">graph LR</pre>'

        assert scripts.load("<head></head>text", "a/b.html") == "<head></head>text"
        assert '<script src="../assets/mermaid.min.js"></script>\n</head>' in scripts.load(page, "a/b.html")

    def test_the_search_of_files_does_not_come_from_a_cdn(self) -> None:
        page = f'<head><script src="{scripts.FILE_SEARCH_URL}"></script></head>'

        assert scripts.load(page, "index.html") == '<head><script src="assets/iframe-worker.js"></script></head>'
