"""The Python files of a new project: config and streams."""

from __future__ import annotations

from typing import Any

from balog.tap.projects.model import ApiDescription, StreamPlan
from balog.tap.projects.source_text import Code, assigned, call, fill, literal, quoted

HINT = "written once by balog tap new, yours to edit"


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
    client = [("", Code('config["base_url"]'))]
    if api.sign_in.expression:
        client.append(("auth=", Code(api.sign_in.expression)))
    names = ", ".join(api.sign_in.imports)
    return fill(
        "streams.py",
        name=package.replace("_", "-"),
        hint=HINT,
        base="RestStream, Tap" if api.streams else "Tap",
        imports=f"from balog.tap.credentials import {names}\n" if names else "",
        package=package,
        client=call("return Client(", client, indent=4),
        classes="".join(f"\n\n{_stream(plan)}" for plan in api.streams),
    )


def _stream(plan: StreamPlan) -> str:
    settings: dict[str, Any] = {"path": plan.path.lstrip("/") or "/"}
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
