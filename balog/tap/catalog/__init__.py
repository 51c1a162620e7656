"""The catalog: what a tap has, how it is replicated, and what of it was selected.

Forms follow Singer's docs/DISCOVERY_MODE.md and SYNC_MODE.md: ``--catalog`` with metadata, the older ``--properties``
with ``selected`` inside of the schemas.
"""

from balog.tap.catalog.choosing import Choice, choose
from balog.tap.catalog.defaults import default_metadata
from balog.tap.catalog.discovering import Discovered, discover, entry_of
from balog.tap.catalog.entry import Breadcrumb, Catalog, Entry, Metadata, Method
from balog.tap.catalog.nodes import Node
from balog.tap.catalog.reading import parse_catalog, read_catalog, read_properties
from balog.tap.catalog.selection import Selection, selected_properties

__all__ = [
    "Breadcrumb",
    "Catalog",
    "Choice",
    "Discovered",
    "Entry",
    "Metadata",
    "Method",
    "Node",
    "Selection",
    "choose",
    "default_metadata",
    "discover",
    "entry_of",
    "parse_catalog",
    "read_catalog",
    "read_properties",
    "selected_properties",
]
