"""The description of the distribution: the README with links that work outside the checkout.

All other metadata is in ``setup.cfg``. Links and pictures become absolute below ``Source`` of its ``project_urls``. As
long as there is no such URL, a link is its text alone, and pictures and lists of links (``More: …``) are left out, so
that an index shows nothing broken.
"""

from __future__ import annotations

import re
from configparser import ConfigParser
from pathlib import Path

ROOT = Path(__file__).resolve().parent
FENCE = re.compile(r"^(```+|~~~+).*?^\1[ ]*$", re.MULTILINE | re.DOTALL)
MORE = re.compile(r"^More: .*\n(?:.+\n)*", re.MULTILINE)
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\](?:\([^)]*\))?)*)\]\((?!\w+:|#)([^)\s]+)\)")


def source_url() -> str:
    """Return the URL of the repository, or nothing."""
    config = ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    urls = config.get("metadata", "project_urls", fallback="")
    found = dict(line.split("=", 1) for line in urls.splitlines() if "=" in line)
    return {name.strip(): url.strip() for name, url in found.items()}.get("Source", "").rstrip("/")


def long_description(readme: str, source: str) -> str:
    """Return the README with absolute links, outside its code blocks.

    Args:
        readme: the README.
        source: the URL of the repository, or nothing.
    """

    def absolute(match: re.Match[str]) -> str:
        picture, text, path = match.groups()
        text = LINK.sub(absolute, text)  # a picture that is a link
        if not source:
            return "" if picture else text
        return f"{picture}[{text}]({source}/{'raw' if picture else 'blob'}/main/{path})"

    def portable(text: str) -> str:
        return LINK.sub(absolute, text if source else MORE.sub("", text))

    parts = []
    at = 0
    for fence in FENCE.finditer(readme):
        parts += [portable(readme[at : fence.start()]), fence[0]]
        at = fence.end()
    return "".join([*parts, portable(readme[at:])])


if __name__ == "__main__":
    from setuptools import setup

    setup(long_description=long_description((ROOT / "README.md").read_text(encoding="utf-8"), source_url()))
