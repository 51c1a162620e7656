"""What an index shows as the description of the distribution."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[1]
URL = "https://git.example/balog"


def load_setup() -> ModuleType:
    spec = importlib.util.spec_from_file_location("balog_setup", ROOT / "setup.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


setup = load_setup()
README = (ROOT / "README.md").read_text(encoding="utf-8")


def targets(markdown: str) -> list[str]:
    """Return where the links and pictures of a Markdown text lead, as its parser finds them."""
    inline = [
        child for token in MarkdownIt("gfm-like", {"linkify": False}).parse(markdown) for child in token.children or ()
    ]
    return [str(token.attrs[name]) for token in inline for name in ("href", "src") if name in token.attrs]


@pytest.mark.parametrize("source", ["", URL])
def test_no_link_of_the_readme_is_relative(source: str) -> None:
    assert [each for each in targets(setup.long_description(README, source)) if not re.match("https?:|#", each)] == []


def test_each_link_of_the_readme_is_kept() -> None:
    before = [each for each in targets(README) if not re.match("https?:|#", each)]
    after = [each for each in targets(setup.long_description(README, URL)) if each.startswith(URL)]

    assert before
    assert [each.split("/main/")[1] for each in after] == before


@pytest.mark.parametrize(
    ("text", "absolute", "alone"),
    [
        ("[a](docs/a.md#b)", f"[a]({URL}/blob/main/docs/a.md#b)", "a"),
        ("![a](docs/a.svg)", f"![a]({URL}/raw/main/docs/a.svg)", ""),
        ("[![a](a.svg)](a.md)", f"[![a]({URL}/raw/main/a.svg)]({URL}/blob/main/a.md)", ""),
        (
            "a\nMore: [a](a.md) ·\n[b](b.md)\n\nb",
            f"a\nMore: [a]({URL}/blob/main/a.md) ·\n[b]({URL}/blob/main/b.md)\n\nb",
            "a\n\nb",
        ),
        ("[a](https://x.org) [b](#b)", "[a](https://x.org) [b](#b)", "[a](https://x.org) [b](#b)"),
        ("```sh\n[a](b)\n```\n[a](b)", f"```sh\n[a](b)\n```\n[a]({URL}/blob/main/b)", "```sh\n[a](b)\n```\na"),
    ],
)
def test_links_and_pictures(text: str, absolute: str, alone: str) -> None:
    assert setup.long_description(text, URL) == absolute
    assert setup.long_description(text, "") == alone


def test_the_url_is_that_of_the_metadata(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup, "ROOT", tmp_path)
    assert setup.source_url() == ""
    (tmp_path / "setup.cfg").write_text(f"[metadata]\nproject_urls =\n    Source = {URL}/\n    Docs = https://x.org\n")

    assert setup.source_url() == URL
