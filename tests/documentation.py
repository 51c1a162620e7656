"""The pages of ``docs/``, found by their names."""

from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"


def docs_page(name: str) -> Path:
    """Return the page with this file name, in whichever folder of ``docs/`` it is."""
    (found,) = DOCS.rglob(name)
    return found
