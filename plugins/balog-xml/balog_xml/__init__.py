"""Conversion of XML Schema and WSDL to JSON Schema, and of XML elements to records, without other packages."""

from balog_xml.sources import wsdl, xsd
from balog_xml.values import from_xml

__all__ = ["from_xml", "wsdl", "xsd"]
