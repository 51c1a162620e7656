"""Files of the checkout outside ``docs/`` that pages link to: the site has them below ``project/``."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import Path, PurePosixPath

import fences

LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\])\((?!\w+:|#)([^)\s#]+)(#[^)\s]*)?\)")
SECTIONS = re.compile(r"^<!-- README\.md: (.+) -->$", re.MULTILINE)
STARTS = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")


def site_path(path: str) -> str:
    """Return where the site has a file of the checkout: ``docs/a.md`` is ``a.md``, ``x.md`` is ``project/x.md``."""
    return path.removeprefix("docs/") if path.startswith("docs/") else f"project/{path}"


def checkout_path(site: str) -> str:
    """Return the file of the checkout for one of the site."""
    return site.removeprefix("project/") if site.startswith("project/") else f"docs/{site}"


@lru_cache(maxsize=1)
def linked_files(root: Path) -> tuple[str, ...]:
    """Return the paths outside ``docs/`` that a page of the site links to, directly or through another."""
    found: set[str] = set()
    pending = [*STARTS, *(str(page.relative_to(root)) for page in root.glob("docs/**/*.md"))]
    while pending:
        path = pending.pop()
        if path in found or not (root / path).is_file():
            continue
        found.add(path)
        if path.endswith(".md"):
            text = fences.FENCE.sub("", (root / path).read_text(encoding="utf-8"))
            pending += [target(path, link[2], root) or "" for link in LINK.finditer(text)]
    return tuple(sorted(path for path in found - {""} if not path.startswith("docs/")))


def target(path: str, link: str, root: Path) -> str | None:
    """Return the file of the checkout that a page's link leads to; the README of a folder, None for one without."""
    found = PurePosixPath(os.path.normpath(PurePosixPath(path).parent / link))
    if (root / found).is_dir():
        found /= "README.md"
        return str(found) if (root / found).is_file() else None
    return str(found)


def rewrite_links(markdown: str, site: str, root: Path) -> str:
    """Return a page of the site with links to the site's files instead of the checkout's."""
    path = checkout_path(site)

    def rewrite(match: re.Match[str]) -> str:
        text, link, anchor = match[1], match[2], match[3] or ""
        to = target(path, link, root)
        if to is None:
            return text.removeprefix("[").removesuffix("]")
        if path.startswith("docs/") and to.startswith("docs/"):
            return match[0]
        return f"{text}({os.path.relpath(site_path(to), PurePosixPath(site).parent)}{anchor})"

    return fences.outside(markdown, lambda part: LINK.sub(rewrite, part))


def include_readme(markdown: str, site: str, root: Path) -> str:
    """Return a page with sections of README.md in place of ``<!-- README.md: Title | Title -->``.

    Raises:
        KeyError: the README has no section of that title.
    """
    readme = (root / "README.md").read_text(encoding="utf-8")
    sections = dict(part.split("\n", 1) for part in f"\n{readme}".split("\n## ")[1:])
    folder = PurePosixPath(checkout_path(site)).parent

    def moved(match: re.Match[str]) -> str:
        return f"{match[1]}({os.path.relpath(match[2], folder)}{match[3] or ''})"

    def included(match: re.Match[str]) -> str:
        text = "\n\n".join(f"## {title}\n{sections[title].rstrip()}" for title in match[1].split(" | "))
        return fences.outside(text, lambda part: LINK.sub(moved, part))

    return SECTIONS.sub(included, markdown)
