"""XML Schema and WSDL as JSON Schema, and XML elements as records of it; on the standard library alone."""

from balog.tap.schema.xml.sources import wsdl, xsd
from balog.tap.schema.xml.values import from_xml

__all__ = ["from_xml", "wsdl", "xsd"]
