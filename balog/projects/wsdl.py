"""The description of a SOAP service, from its WSDL 1.1."""

from __future__ import annotations

import os
from typing import Any

from balog.projects.model import ApiDescription, ApiOperation, OperationParameter, SoapCall, StreamPlan
from balog.projects.names import UniqueNames, pascal, snake
from balog.projects.openapi import usable_url
from balog.projects.source_text import sentence
from balog.tap.errors import SchemaError
from balog.tap.relative_files import read_file
from balog.tap.schema.documents import is_remote
from balog.tap.schema.xml.converter import XsdConverter
from balog.tap.schema.xml.definitions import Declaration, Definitions
from balog.tap.schema.xml.parser import XmlNode, local
from balog.tap.schema.xml.soap import SoapClient
from balog.tap.schema.xml.sources import answer_of, described

_SOAP_12 = "{http://schemas.xmlsoap.org/wsdl/soap12/}"
_TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
_KEYS = ("id", "uuid", "guid", "key", "code", "number")
_MAX_OPERATIONS = 500


def describe_service(place: str, *, allow_remote: bool = False) -> ApiDescription:
    """Return the description of a SOAP service.

    Args:
        place: the file or URL of a WSDL 1.1.
        allow_remote: whether to fetch imported documents; those of a URL are.

    Raises:
        SchemaError: the document cannot be read, or is not a WSDL.
    """
    path = place if is_remote(place) else os.path.abspath(place)
    definitions = Definitions(read_file, allow_remote or is_remote(place))
    nodes = described(definitions, path)
    title = next((node.get("name") for node in nodes if local(node.tag) == "service"), "")
    api = ApiDescription(sentence(title, "the service").rstrip("."), _address(nodes))
    names = UniqueNames([*dir(SoapClient), "Any", "config", "RESPONSES"])
    streams, classes = UniqueNames(), UniqueNames()
    declared = [node for port in nodes if local(port.tag) == "portType" for node in port.iter("operation")]
    for node in declared[:_MAX_OPERATIONS]:
        try:
            operation = _operation(definitions, nodes, node, names)
        except SchemaError as error:
            api.skipped.append(f"{sentence(node.get('name'), 'an operation')[:80]} is left out: {error.reason}")
            continue
        api.operations.append(operation)
        _add_stream(api, operation, streams, classes)
    return api


def _address(nodes: list[XmlNode]) -> str:
    for service in nodes:
        if local(service.tag) == "service":
            for address in service.iter("address"):
                if url := usable_url(address.get("location")):
                    return url
    return ""


def _operation(definitions: Definitions, nodes: list[XmlNode], node: XmlNode, names: UniqueNames) -> ApiOperation:
    wire = node.get("name")
    converter = XsdConverter(definitions, 1, 20)
    answer = answer_of(converter, definitions, nodes, wire)
    element, fields, is_typed = _request(definitions, nodes, node)
    binding = _binding(nodes, wire)
    body_space = next((each.get("namespace") for each in binding.iter("body")), "") if binding is not None else ""
    detail = None if binding is None else next((each for each in binding if local(each.tag) == "operation"), None)
    action = "" if detail is None else detail.get("soapAction")
    is_12 = detail is not None and detail.tag.startswith(_SOAP_12)
    space, _, name = element.rpartition("}")
    space = space.removeprefix("{") or (body_space if is_typed else "")
    made = ApiOperation(names.take(snake(wire, "call")), "POST", "", sentence(f"Call {wire}", "Call the service"))
    is_qualified = not is_typed and _is_qualified(nodes, space)
    made.soap = SoapCall(wire, name or wire, space, is_qualified, action, is_12, answer)
    arguments = UniqueNames(["self", "result", "Any"])
    for field, schema in fields.items():
        kinds = [kind for kind in _kinds(schema) if kind != "null"]
        kind = _TYPES.get(kinds[0], "Any") if len(kinds) == 1 else "Any"
        is_required = "null" not in _kinds(schema) and kind != "Any"
        argument = arguments.take(snake(field, "value"))
        made.parameters.append(OperationParameter(field, argument, "query", kind, is_required))
    return made


def _request(
    definitions: Definitions, nodes: list[XmlNode], node: XmlNode
) -> tuple[str, dict[str, dict[str, Any]], bool]:
    """Return the element of a request, its fields, and whether they are parts with types (rpc)."""
    given = next((each for each in node if local(each.tag) == "input"), None)
    name = "" if given is None else given.get("message").rpartition(":")[2]
    message = next((each for each in nodes if local(each.tag) == "message" and each.get("name") == name), None)
    fields: dict[str, dict[str, Any]] = {}
    converter = XsdConverter(definitions, 1, 20)
    for part in message if message is not None else ():
        here = Declaration(part, "")
        if part.get("element"):
            qualified = here.name(part.get("element"))
            schema = converter.element(definitions.find("element", qualified, part.line))
            return qualified, dict(schema.get("properties", {})), False
        if part.get("type"):
            fields[part.get("name")] = converter.named(here.name(part.get("type")), part.line)
    return node.get("name"), fields, True


def _binding(nodes: list[XmlNode], name: str) -> XmlNode | None:
    """Return an operation's part of a binding; that of SOAP 1.1 if there are several."""
    found = [
        each
        for node in nodes
        if local(node.tag) == "binding"
        for each in node.children
        if local(each.tag) == "operation" and each.get("name") == name
    ]
    found.sort(key=lambda each: any(inner.tag.startswith(_SOAP_12) for inner in each))
    return found[0] if found else None


def _is_qualified(nodes: list[XmlNode], space: str) -> bool:
    for node in nodes:
        for schema in node.iter("schema"):
            if schema.get("targetNamespace") == space:
                return schema.get("elementFormDefault") == "qualified"
    return True


def _kinds(schema: dict[str, Any]) -> list[str]:
    kinds = schema.get("type", [])
    return [kinds] if isinstance(kinds, str) else list(kinds)


def _add_stream(api: ApiDescription, operation: ApiOperation, names: UniqueNames, classes: UniqueNames) -> None:
    """Add the stream of an operation whose answer has a list of objects, if its arguments can be settings."""
    soap = operation.soap
    found = None if soap is None else _list_in(soap.answer)
    required = [each for each in operation.parameters if each.is_required]
    if found is None or any(each.annotation == "Any" for each in required):
        return
    way, schema = found
    if any(not step.isidentifier() for step in way):
        return
    name = names.take(snake(way[-1] if way else operation.name, "records"))
    plan = StreamPlan(name, classes.take(pascal(name, "Records")), "", {"type": "object", **schema}, ".".join(way))
    plan.operation = operation
    for each in required:
        setting = snake(f"{operation.name} {each.argument}", "setting")
        plan.params[each.argument] = setting
        kind = next(name for name, value in _TYPES.items() if value == each.annotation)
        api.settings[setting] = {"type": kind, "description": f"{each.name} of {operation.name}"[:100]}
    by_plain = {key.lower().removeprefix("attr__"): key for key in schema["properties"]}
    plan.keys = [by_plain[key] for key in _KEYS if key in by_plain][:1]
    api.streams.append(plan)


def _list_in(schema: dict[str, Any]) -> tuple[list[str], dict[str, Any]] | None:
    """Return the path of the first list of objects in an answer, the least deep, and the schema of its items."""
    level: list[tuple[list[str], dict[str, Any]]] = [([], schema)]
    while level and len(level[0][0]) < 6:
        below = []
        for way, node in level:
            for name, inner in node.get("properties", {}).items():
                items = inner.get("items")
                if "array" in _kinds(inner) and isinstance(items, dict) and items.get("properties"):
                    return [*way, name], {"properties": items["properties"]}
                if inner.get("properties"):
                    below.append(([*way, name], inner))
        level = below
    return None
