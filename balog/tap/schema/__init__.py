"""Sources of schemas: files, functions, types, XSD and WSDL, and records; resolving of references; flattening.

Each part works without the rest of a tap: ``resolve`` and ``flatten`` take a dict; ``check`` rejects invalid ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from balog.lazy_exports import deferred
from balog.tap.schema.flattening import flatten
from balog.tap.schema.references import resolve
from balog.tap.schema.sources import (
    SchemaSource,
    from_type,
    generated,
    json_file,
    json_folder,
    registry_type,
    schema_of,
)
from balog.tap.schema.validity import check

if TYPE_CHECKING:
    from balog.tap.schema.inference import from_records, infer
    from balog.tap.schema.xml import from_xml, wsdl, xsd

__all__ = [
    "SchemaSource",
    "check",
    "flatten",
    "from_records",
    "from_type",
    "from_xml",
    "generated",
    "infer",
    "json_file",
    "json_folder",
    "registry_type",
    "resolve",
    "schema_of",
    "wsdl",
    "xsd",
]

_HOMES = {
    "from_records": "balog.tap.schema.inference",
    "from_xml": "balog.tap.schema.xml.values",
    "infer": "balog.tap.schema.inference",
    "wsdl": "balog.tap.schema.xml.sources",
    "xsd": "balog.tap.schema.xml.sources",
}
"""Names that few taps use, imported on first access."""

__getattr__ = deferred(globals(), _HOMES)
