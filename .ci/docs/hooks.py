"""Hooks of MkDocs: files of the checkout that pages link to, Markdown as GitHub reads it, and generated pages."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import checkout
import command_reference
import config_reference
import generated_tables
import github_markdown
import navigation
import page_list
import python_reference
import scripts
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files that are not in ``docs/``."""
    for path in checkout.linked_files(ROOT):
        files.append(File.generated(config, checkout.site_path(path), abs_src_path=str(ROOT / path)))
    generated = (command_reference.pages(), config_reference.pages(ROOT), python_reference.pages(), scripts.files(ROOT))
    for name, content in chain(*generated):
        files.append(File.generated(config, name, content=content))
    config.nav = navigation.parts([file.src_uri for file in files.documentation_pages()])
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn the links of a page into those of the site, and its Markdown into MkDocs'."""
    if page.file.src_uri == "index.md":
        markdown = page_list.with_purposes(markdown, ROOT / "docs")
    markdown = generated_tables.fill(markdown)
    markdown = checkout.include_readme(markdown, page.file.src_uri, ROOT)
    markdown = checkout.rewrite_links(markdown, page.file.src_uri, ROOT)
    return github_markdown.convert(markdown)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Load scripts from the site instead of a CDN."""
    return scripts.load(output, page.url)
