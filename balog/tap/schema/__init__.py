"""Where schemas come from: files, functions, XSD and WSDL, records; and their references, resolved."""

from balog.tap.schema.sources import SchemaSource, generated, json_file

__all__ = ["SchemaSource", "generated", "json_file"]
