"""A client for a SOAP service: requests as XML, answers as records by the schemas of its WSDL."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import Any
from xml.etree import ElementTree  # only to write: documents are read by the parser of this package

from balog.tap.errors import SchemaError, SourceError
from balog.tap.http import Client
from balog.tap.schema.xml.parser import XmlNode, local, parse
from balog.tap.schema.xml.values import from_xml

_ENVELOPE = "http://schemas.xmlsoap.org/soap/envelope/"
_ENVELOPE_12 = "http://www.w3.org/2003/05/soap-envelope"
_MAX_FAULT = 200
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class SoapClient(Client):
    """A client for a SOAP service (1.1 and 1.2, document/literal and rpc/literal). See ``Client`` for its arguments."""

    def call(
        self,
        operation: str,
        arguments: Mapping[str, Any],
        schema: Mapping[str, Any],
        *,
        element: str = "",
        namespace: str = "",
        is_qualified: bool = True,
        action: str = "",
        is_soap_12: bool = False,
    ) -> Any:
        """Call an operation, and return its answer.

        Args:
            operation: its name, for errors and metrics.
            arguments: the elements of the request in the order of their schema; None is left out, a list repeats the
                element, a dict has inner elements.
            schema: that of the answer; see ``balog.tap.schema.wsdl``.
            element: the element around the arguments; "" for the operation's name.
            namespace: its namespace.
            is_qualified: whether the inner elements have this namespace, too.
            action: the header ``SOAPAction``.
            is_soap_12: the service wants SOAP 1.2.

        Raises:
            SourceError: the service answers with a fault, or not with SOAP.
        """
        space = _ENVELOPE_12 if is_soap_12 else _ENVELOPE
        envelope = ElementTree.Element(f"{{{space}}}Envelope")
        body = ElementTree.SubElement(envelope, f"{{{space}}}Body")
        outer = ElementTree.SubElement(body, _tag(namespace, element or operation))
        _fill(outer, arguments, namespace if is_qualified else "")
        if is_soap_12:
            headers = {"Content-Type": f'application/soap+xml; charset=utf-8; action="{action}"'}
        else:
            headers = {"Content-Type": "text/xml; charset=utf-8", "SOAPAction": f'"{action}"'}
        data = ElementTree.tostring(envelope, "utf-8", xml_declaration=True)
        response = self.post(
            body=data, headers={"Accept": "text/xml, application/soap+xml", **headers}, endpoint=operation, allow=(500,)
        )
        try:
            parsed = parse(response.body)
        except SchemaError as error:
            raise SourceError(f"{operation}: the answer is not XML: {error.reason}") from None
        return from_xml(_content(parsed, operation, arguments), schema)


def _content(envelope: XmlNode, operation: str, arguments: Mapping[str, Any]) -> XmlNode:
    """Return the element in the body of an answer."""
    body = next((node for node in envelope if local(node.tag) == "Body"), None)
    if local(envelope.tag) != "Envelope" or body is None or not len(body):
        raise SourceError(f"{operation}: the answer is not a SOAP envelope with a body")
    found = body.children[0]
    if local(found.tag) != "Fault":
        return found
    texts = [node.text for name in ("faultcode", "Value", "faultstring", "Text") for node in found.iter(name)]
    text = " ".join("".join(char if char.isprintable() else " " for char in " ".join(texts)).split())
    for value in map(str, arguments.values()):
        text = text.replace(value, "…") if len(value) >= 6 else text
    raise SourceError(f"{operation}: the service answered with a fault: {text[:_MAX_FAULT]}")


def _fill(element: ElementTree.Element, arguments: Mapping[str, Any], namespace: str) -> None:
    for name, value in arguments.items():
        for one in value if isinstance(value, (list, tuple)) else (value,):
            if one is None:
                continue
            inner = ElementTree.SubElement(element, _tag(namespace, name))
            if isinstance(one, Mapping):
                _fill(inner, one, namespace)
            else:
                inner.text = _text(one)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return _NOT_XML.sub("", value.isoformat() if isinstance(value, date) else str(value))


def _tag(namespace: str, name: str) -> str:
    return f"{{{namespace}}}{name}" if namespace else name
