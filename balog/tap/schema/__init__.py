"""Where schemas come from: files, functions, types, XSD and WSDL, records; and their references, resolved.

Each part is usable without the rest of a tap: ``resolve`` and ``flatten`` are of a dict, ``check`` says what is wrong.
"""

from balog.tap.schema.checking import check
from balog.tap.schema.flattening import flatten
from balog.tap.schema.references import resolve
from balog.tap.schema.sampling import from_records, infer
from balog.tap.schema.sources import (
    SchemaSource,
    from_type,
    generated,
    json_file,
    json_folder,
    registry_type,
    schema_of,
)
from balog.tap.schema.xsd import from_xml, wsdl, xsd

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
