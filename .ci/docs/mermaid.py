"""Mermaid's script in the site, on the pages that have a picture of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

SOURCE = ".demo/mermaid/mermaid.min.js"
SCRIPT = "assets/mermaid.min.js"
PICTURE = '<pre class="mermaid">'


def files(root: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the script, if it is installed."""
    source = root / SOURCE
    if source.is_file():
        yield SCRIPT, source.read_bytes()


def load(output: str, url: str) -> str:
    """Return the page with the script before those of the theme, which would load it from a CDN."""
    if PICTURE not in output:
        return output
    script = f'<script src="{"../" * url.count("/")}{SCRIPT}"></script>\n'
    head, body = output.split("</head>", 1)
    return f"{head}{script}</head>{body}"
