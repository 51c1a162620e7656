"""The catalog: the streams of a tap, how they are replicated, and what is selected.

The formats are those of Singer's docs/DISCOVERY_MODE.md and SYNC_MODE.md: ``--catalog`` with metadata, and
the older ``--properties`` with ``selected`` inside the schemas.
"""

from balog.tap.catalog.choice import CatalogChoice, choose
from balog.tap.catalog.discovery import Discovered, default_metadata, discover, entry_of
from balog.tap.catalog.entry import (
    Breadcrumb,
    Catalog,
    CatalogEntry,
    Metadata,
    Method,
    PropertySelection,
    SchemaNode,
)
from balog.tap.catalog.reader import parse_catalog, read_catalog

__all__ = [
    "Breadcrumb",
    "Catalog",
    "CatalogChoice",
    "CatalogEntry",
    "Discovered",
    "Metadata",
    "Method",
    "PropertySelection",
    "SchemaNode",
    "choose",
    "default_metadata",
    "discover",
    "entry_of",
    "parse_catalog",
    "read_catalog",
]
