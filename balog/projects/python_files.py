"""The Python files of a new project: client, types, streams, config."""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence
from typing import Any

from balog.projects.model import ApiDescription, ApiOperation, StreamPlan, TypedModel
from balog.projects.names import pascal
from balog.projects.source_text import Code, assigned, call, fill, literal, quoted

HINT = "written once by balog tap new, yours to edit"
_ANNOTATIONS = frozenset({"Any", "bool", "Decimal", "dict", "float", "int", "list", "str"})


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
    if any("models." in each.returns for each in api.operations):
        imports.append(f"from {package} import models\n")
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
    elif operation.returns == "bytes":
        lines.append(call("return self.request(", arguments, ").body", 8))
    else:
        lines.append(call(f"result: {operation.returns} = self.request(", arguments, ").json()", 8))
        lines.append("        return result")
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


def models_file(models: Sequence[TypedModel], title: str) -> str:
    """Return ``models.py``: a TypedDict for each object of the document."""
    for model in models:  # the client keeps the digits of numbers
        model.fields = {name: re.sub(r"\bfloat\b", "int | Decimal", kind) for name, kind in model.fields.items()}
    names = {model.name for model in models}
    body = "".join(f"\n\n{_model(model, names)}" for model in models)
    body = body.removeprefix("\n") if not body.startswith("\n\nclass ") else body  # as isort wants it
    kinds = " ".join(kind for model in models for kind in model.fields.values())
    used = "Any, TypedDict" if re.search(r"\bAny\b", kinds) else "TypedDict"
    exact = "from decimal import Decimal\n" if re.search(r"\bDecimal\b", kinds) else ""
    return (
        f'"""The objects of {title}; {HINT}.\n\nAll keys are optional, because sources leave some out."""\n\n'
        f"from __future__ import annotations\n\n{exact}from typing import {used}\n{body}"
    )


def _model(model: TypedModel, names: set[str]) -> str:
    is_plain = all(
        name.isidentifier() and name.isascii() and not keyword.iskeyword(name) and not name.startswith("__")
        for name in model.fields
    ) and not (_ANNOTATIONS | names) & set(model.fields)
    if is_plain:
        lines = "".join(f"    {name}: {kind}\n" for name, kind in model.fields.items())
        return f'class {model.name}(TypedDict, total=False):\n    """An object of the source."""\n\n{lines}'
    arguments: list[tuple[str, Any]] = [("", model.name), ("", model.fields), ("total=", False)]
    return call(f"{model.name} = TypedDict(", arguments) + "\n"


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
