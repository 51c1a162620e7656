"""Scripts that the theme would load from a CDN: Mermaid, and the search in pages that are opened as files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

FOLDER = ".demo/site-scripts"
MERMAID = "mermaid.min.js"
PICTURE = '<pre class="mermaid">'
FILE_SEARCH = "iframe-worker.js"
FILE_SEARCH_URL = "https://unpkg.com/iframe-worker/shim"


def files(root: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the scripts.

    Raises:
        FileNotFoundError: they are not installed.
    """
    for name in (MERMAID, FILE_SEARCH):
        yield f"assets/{name}", (root / FOLDER / name).read_bytes()


def load(output: str, url: str) -> str:
    """Return a page with the scripts of the site: Mermaid only if the page has a picture of it."""
    assets = f"{'../' * url.count('/')}assets"
    output = output.replace(FILE_SEARCH_URL, f"{assets}/{FILE_SEARCH}")
    if PICTURE not in output:
        return output
    head, body = output.split("</head>", 1)
    return f'{head}<script src="{assets}/{MERMAID}"></script>\n</head>{body}'
