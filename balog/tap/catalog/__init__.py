"""The catalog: the streams of a tap, how they are replicated, and what is selected.

The format is that of Singer's docs/DISCOVERY_MODE.md and SYNC_MODE.md: ``--catalog`` with metadata.
"""

from balog.tap.catalog.choice import Discovered, choose, discover
from balog.tap.catalog.entry import Breadcrumb, Catalog, CatalogEntry, Method, PropertySelection
from balog.tap.catalog.reader import parse_catalog, read_catalog

__all__ = [
    "Breadcrumb",
    "Catalog",
    "CatalogEntry",
    "Discovered",
    "Method",
    "PropertySelection",
    "choose",
    "discover",
    "parse_catalog",
    "read_catalog",
]
