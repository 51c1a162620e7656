"""The catalog: what a tap has, how it is replicated, and what of it was selected.

Forms follow Singer's docs/DISCOVERY_MODE.md and SYNC_MODE.md: ``--catalog`` with metadata, the older ``--properties``
with ``selected`` inside of the schemas.
"""

from balog.tap.catalog.entry import Breadcrumb, Catalog, Entry, Metadata, Method

__all__ = ["Breadcrumb", "Catalog", "Entry", "Metadata", "Method"]
