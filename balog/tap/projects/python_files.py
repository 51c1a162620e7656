"""The Python files of a new project: client, streams, config."""

from __future__ import annotations

import re
from typing import Any

from balog.tap.projects.model import ApiDescription, ApiOperation, StreamPlan
from balog.tap.projects.names import pascal
from balog.tap.projects.source_text import Code, assigned, call, fill, literal, quoted

HINT = "written once by balog tap new, yours to edit"


def client_class(package: str) -> str:
    """Return the name of the client's class."""
    return pascal(package.removeprefix("tap_"), "Api") + "Client"


def client_file(package: str, api: ApiDescription) -> str:
    """Return ``client.py``: a method for each operation."""
    methods = "".join(f"\n{_method(operation)}" for operation in api.operations)
    start = [("", Code('config["base_url"]'))]
    if api.sign_in.expression:
        start.append(("auth=", Code(api.sign_in.expression)))
    imports = ["from urllib.parse import quote\n"] if any("{" in each.path for each in api.operations) else [""]
    if api.sign_in.imports:
        imports.append(f"from balog.tap.credentials import {', '.join(api.sign_in.imports)}")
    imports.append("from balog.tap.http import Client\n")
    return fill(
        "client.py",
        title=api.title,
        hint=HINT,
        imports="\n".join(imports),
        client=client_class(package),
        start=call("super().__init__(", start, indent=8),
        methods=methods,
    )


def _method(operation: ApiOperation) -> str:
    required = [each for each in operation.parameters if each.is_required]
    optional = [each for each in operation.parameters if not each.is_required]
    in_path = [each for each in required if each.place == "path"]
    signature = [("", Code("self")), *(("", Code(f"{each.argument}: {each.annotation}")) for each in in_path)]
    named = [f"{each.argument}: {each.annotation}" for each in required if each.place != "path"]
    named += ["body: Any = None"] if operation.has_body else []
    named += [f"{each.argument}: {_optional(each.annotation)} = None" for each in optional]
    signature += [("", Code(text)) for text in (["*", *named] if named else [])]
    lines = [
        call(f"def {operation.name}(", signature, f") -> {operation.returns}:", 4),
        f'        """{operation.summary}"""',
    ]
    arguments: list[tuple[str, Any]] = [("", operation.verb), ("", Code(_path(operation)))]
    queries = {each.name: Code(each.argument) for each in operation.parameters if each.place == "query"}
    headers = [each for each in operation.parameters if each.place == "header"]
    if queries:
        arguments.append(("", queries))
    if operation.has_body:
        arguments.append(("json=", Code("body")))
    if headers:
        names = {each.name: Code(each.argument) for each in headers}
        lines.append(f"        given = {literal(names, 8, 8)}")
        lines.append("        headers = {name: str(value) for name, value in given.items() if value is not None}")
        arguments.append(("headers=", Code("headers")))
    if operation.returns == "None":
        lines.append(call("self.request(", arguments, indent=8))
    else:
        end = ").body" if operation.returns == "bytes" else ").json()"
        lines.append(call("return self.request(", arguments, end, 8))
    return "\n".join(lines) + "\n"


def _optional(annotation: str) -> str:
    return annotation if annotation == "Any" or annotation.endswith("None") else f"{annotation} | None"


def _path(operation: ApiOperation) -> str:
    """Return the path as an f-string whose values are percent-encoded; the rest of it is already."""
    path = operation.path.lstrip("/")
    arguments = {each.name: each.argument for each in operation.parameters if each.place == "path"}
    if not arguments:
        return quoted(path)
    filled = re.sub(r"\{([^{}]*)\}", lambda found: f"{{quote(str({arguments[found[1]]}), safe='')}}", path)
    return f'f"{filled}"'


def config_file(package: str, api: ApiDescription) -> str:
    """Return ``config.py``: the JSON Schema of the config."""
    base = {"type": "string", "minLength": 1, "description": f"the URL of {api.title}"}
    base |= {"default": api.base_url} if api.base_url else {}
    settings = {"base_url": base, **api.sign_in.settings, **api.settings}
    required = [name for name, value in settings.items() if "default" not in value and name != "token_file"]
    schema = {"type": "object", "required": required, "properties": settings}
    shown = literal(schema, 0, len("CONFIG: dict[str, Any] = "))
    return fill("config.py", name=package.replace("_", "-"), hint=HINT, schema=shown)


def streams_file(package: str, api: ApiDescription) -> str:
    """Return ``streams.py``: the tap, its client and its streams."""
    return fill(
        "streams.py",
        name=package.replace("_", "-"),
        hint=HINT,
        base="RestStream, Tap" if api.streams else "Tap",
        package=package,
        client=client_class(package),
        classes="".join(f"\n\n{_stream(plan)}" for plan in api.streams),
    )


def _stream(plan: StreamPlan) -> str:
    settings: dict[str, Any] = {"path": plan.path.lstrip("/")}
    settings |= {"params": plan.params} if plan.params else {}
    settings |= {"items": plan.items} if plan.items else {}
    settings |= {"paging": plan.paging} if plan.paging else {}
    settings |= {"parent": Code(plan.parent.class_name)} if plan.parent is not None else {}
    settings |= {"from_parent": plan.from_parent} if plan.from_parent else {}
    settings["key_properties"] = plan.keys
    if plan.replication_key:
        settings |= {"replication_key": plan.replication_key, "is_sorted": False}
    lines = "".join(f"{assigned(name, value)}\n" for name, value in settings.items())
    notes = [] if plan.paging else ["    # The document has no paging that was recognized: is this one page?\n"]
    notes += [] if plan.keys else ["    # No property looks like a key; without one, targets append.\n"]
    return (
        f'@tap.stream({quoted(plan.name)})\nclass {plan.class_name}(RestStream):\n    """Records of the source."""\n\n'
        f"{''.join(notes)}{lines}"
    )
