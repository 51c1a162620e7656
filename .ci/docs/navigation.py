"""The site's navigation, from the folders of ``docs/``: a new page needs no entry."""

from __future__ import annotations

from typing import Any

PARTS = {
    "Home": "index.md",
    "Tutorials": "tutorials",
    "How-to guides": "how-to",
    "Reference": "reference",
    "Explanation": "explanation",
    "Decisions": "decisions",
    "Internals": "internals",
    "Glossary": "glossary.md",
    "Project": "project",
}
TITLES = {"cli": "Commands", "configs": "Configs, field by field", "python": "Python", "sinks": "Sinks"}


def parts(pages: list[str]) -> list[dict[str, Any]]:
    """Return MkDocs' ``nav`` for the paths of the site's pages.

    Raises:
        ValueError: pages that no part of the site has.
    """
    found = [
        {title: at if at in pages else tree(at, pages)}
        for title, at in PARTS.items()
        if at in pages or any(page.startswith(f"{at}/") for page in pages)
    ]
    if lost := [page for page in pages if page.split("/")[0] not in PARTS.values()]:
        raise ValueError(f"no part of the site in .ci/docs/navigation.py has {', '.join(sorted(lost))}")
    return found


def tree(folder: str, pages: list[str]) -> list[Any]:
    """Return the pages of a folder in the order of their names, then its folders."""
    below = [page.removeprefix(f"{folder}/") for page in pages if page.startswith(f"{folder}/")]
    own = sorted((each for each in below if "/" not in each), key=lambda each: (each != "index.md", each.lower()))
    folders = sorted({each.split("/")[0] for each in below if "/" in each})
    inner = [{TITLES.get(each, each): tree(f"{folder}/{each}", pages)} for each in folders]
    return [*(f"{folder}/{each}" for each in own), *inner]
