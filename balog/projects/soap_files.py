"""The files of a project for a SOAP service that differ from those for REST: client, streams, stand-in."""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import escape

from balog.projects.model import ApiDescription, ApiOperation, StreamPlan
from balog.projects.python_files import HINT, client_class
from balog.projects.source_text import Code, call, quoted
from balog.projects.stand_in_files import sample_value
from balog.tap.schema.xml.values import ATTRIBUTE, TEXT


def soap_client_file(package: str, api: ApiDescription) -> str:
    """Return ``client.py``: a method for each operation."""
    methods = "".join(f"\n{_method(each)}" for each in api.operations)
    return (
        f'"""A client for {api.title}; {HINT}."""\n\nfrom __future__ import annotations\n\nfrom typing import Any\n\n'
        "from balog.tap.schema import json_folder\nfrom balog.tap.schema.xml.soap import SoapClient\n\n"
        'RESPONSES = json_folder("responses")\n\n\n'
        f'class {client_class(package)}(SoapClient):\n    """A client for {api.title}."""\n\n'
        "    def __init__(self, config: dict[str, Any]) -> None:\n"
        f'        super().__init__(config["base_url"])\n{methods}'
    )


def _method(operation: ApiOperation) -> str:
    soap = operation.soap
    if soap is None:
        raise ValueError("want an operation of a SOAP service")
    required = [f"{each.argument}: {each.annotation}" for each in operation.parameters if each.is_required]
    optional = [each for each in operation.parameters if not each.is_required]
    named = required + [
        f"{each.argument}: {each.annotation}{'' if each.annotation == 'Any' else ' | None'} = None" for each in optional
    ]
    signature = [("", Code(text)) for text in ("self", *(["*", *named] if named else []))]
    arguments: list[tuple[str, Any]] = [
        ("", soap.operation),
        ("", {each.name: Code(each.argument) for each in operation.parameters}),
        ("", Code(f"RESPONSES(None, {quoted(operation.name)})")),
    ]
    arguments += [("element=", soap.element)] if soap.element != soap.operation else []
    arguments += [("namespace=", soap.namespace)] if soap.namespace else []
    arguments += [] if soap.is_qualified else [("is_qualified=", False)]
    arguments += [("action=", soap.action)] if soap.action else []
    arguments += [("is_soap_12=", True)] if soap.is_soap_12 else []
    head = call(f"def {operation.name}(", signature, ") -> Any:", 4)
    return f'{head}\n        """{operation.summary}"""\n{call("return self.call(", arguments, indent=8)}\n'


def soap_streams_file(package: str, api: ApiDescription) -> str:
    """Return ``streams.py``: the tap, its client and its streams."""
    name, client = package.replace("_", "-"), client_class(package)
    streams = "".join(f"\n\n{_stream(plan, client)}" for plan in api.streams)
    return (
        f'"""The streams of {name}; {HINT}."""\n\nfrom __future__ import annotations\n\nfrom typing import Any\n\n'
        "from balog.tap import Tap\nfrom balog.tap.schema import json_folder\n\n"
        f"from {package}.client import {client}\nfrom {package}.config import CONFIG\n\n"
        f'tap = Tap({quoted(name)}, config_spec=CONFIG)\ntap.schema(source=json_folder("schemas"))\n\n\n'
        f"@tap.client\ndef make_client(config: dict[str, Any]) -> {client}:\n"
        f'    """Make the client of a run."""\n    return {client}(config)\n{streams}'
    )


def _stream(plan: StreamPlan, client: str) -> str:
    if plan.operation is None:
        raise ValueError("want a stream of a SOAP service")
    arguments = [(f"{argument}=", Code(f"config[{quoted(name)}]")) for argument, name in plan.params.items()]
    lines = call(f"answer = client.{plan.operation.name}(", arguments, indent=4)
    *outer, last = plan.items.split(".")
    steps = "".join(f"    answer = answer.get({quoted(step)}) or {{}}\n" for step in outer)
    note = "" if plan.keys else "# No property looks like a key; without one, targets append.\n"
    start = call("@tap.stream(", [("", plan.name), ("key_properties=", plan.keys)])
    function = f"read_{plan.name}"
    return (
        f"{note}{start}\ndef {function}(client: {client}, config: dict[str, Any]) -> list[Any]:\n"
        f'    """Return the records of the source, in one answer."""\n{lines}\n{steps}'
        f"    found: list[Any] = answer.get({quoted(last)}) or []\n    return found\n"
    )


def soap_answers(api: ApiDescription) -> dict[str, str]:
    """Return the answers of the stand-in by the element of the request."""
    found: dict[str, str] = {}
    for operation in api.operations:
        if operation.soap is not None:
            plan = next((each for each in api.streams if each.operation is operation), None)
            answer = sample_value(operation.soap.answer, 1)
            if plan is not None:
                *outer, last = plan.items.split(".")
                place = answer
                for step in outer:
                    place = place[step]
                place[last] = [sample_value(plan.schema, number) for number in (1, 2, 3)]
            found.setdefault(operation.soap.element, f"<Response>{_xml(answer)}</Response>")
    return found


def _xml(value: Any) -> str:
    if not isinstance(value, dict):
        return escape("" if value is None else str(value).lower() if isinstance(value, bool) else str(value))
    made = ""
    for name, inner in value.items():
        tag = name.removeprefix(ATTRIBUTE)
        for one in inner if isinstance(inner, list) else [inner]:
            made += _xml(one) if name == TEXT else f"<{tag}>{_xml(one)}</{tag}>"
    return made
