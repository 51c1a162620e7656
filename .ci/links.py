"""Report links of Markdown pages that lead nowhere in the checkout, unlisted pages, and blocks without a file name.

Run by ``make lint``::

    python .ci/links.py

Links to other sites are left alone. GitHub does not show the file name of a block, so the text before the block has to
name it. Exits with 1 when it reports anything.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")])
FENCE = re.compile(r"^```.*?^```[ ]*$", re.MULTILINE | re.DOTALL)
NAMED_BLOCK = re.compile(r"^```(?:\w+ (?P<file>\S+\.\w+))?.*?^```[ ]*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!\w+:)([^)\s]+)\)")


def main() -> int:
    problems = [f"{page.relative_to(ROOT)}: {link} leads nowhere" for page in PAGES for link in lost(page)]
    problems += [
        f"{page.relative_to(ROOT)}: no text names the file {file} of a block"
        for page in PAGES
        for file in unnamed(page)
    ]
    if not is_listed(ROOT / "docs"):
        problems.append("docs/index.md: not the list of the pages that there are; run python .ci/docs/page_list.py")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


@cache
def text_of(page: Path) -> str:
    return FENCE.sub("", page.read_text(encoding="utf-8"))


@cache
def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub makes of headings: lower case, no punctuation, dashes for spaces."""
    headings = re.findall(r"^#+ (.+?)\s*$", text_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def lost(page: Path) -> list[str]:
    """Return the links of a page that lead nowhere."""
    found = []
    for link in LINK.findall(text_of(page)):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            found.append(link)
    return found


def unnamed(page: Path) -> list[str]:
    """Return the file names of blocks that the text between a block and the one before does not have."""
    text, found, at = page.read_text(encoding="utf-8"), [], 0
    for block in NAMED_BLOCK.finditer(text):
        if block["file"] and Path(block["file"]).name not in text[at : block.start()]:
            found.append(block["file"])
        at = block.end()
    return found


def is_listed(docs: Path) -> bool:
    """Return whether ``docs/index.md`` lists the pages that there are, with their titles."""
    sys.path.insert(0, str(Path(__file__).parent / "docs"))
    try:
        from page_list import with_list
    finally:
        sys.path.pop(0)
    index = docs / "index.md"
    return not index.exists() or with_list(docs) == index.read_text(encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
