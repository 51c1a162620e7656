"""A new project: its code, its tests with a stand-in of the source, and all other files, in a new folder."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from balog.common.distribution import DISTRIBUTION
from balog.common.errors import ConfigError
from balog.tap.projects.model import ApiDescription, ApiSignIn, StreamPlan
from balog.tap.projects.source_text import Code, assigned, call, fill, literal, project_name, quoted


def example(title: str) -> ApiDescription:
    """Return the description of an API with one list, to be replaced by the source's own."""
    schema = {
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "name": {"type": ["null", "string"]},
            "updated_at": {"type": ["null", "string"], "format": "date-time"},
        },
    }
    stream = StreamPlan(
        "items",
        "Items",
        "/items",
        schema,
        "data",
        "cursor:next_cursor",
        {"updated_since": "{bookmark}"},
        ["id"],
        "updated_at",
        "updated_since",
    )
    secret = {"type": "string", "minLength": 1, "secret": True}
    sign_in = ApiSignIn(["bearer"], 'bearer(config["token"])', {"token": secret}, "A bearer token.")
    return ApiDescription(title, streams=[stream], sign_in=sign_in)


def project_files(name: str, api: ApiDescription) -> dict[str, str]:
    """Return the texts of a project's files by their paths.

    Args:
        name: the tap's name, such as ``tap-petstore``.
        api: the API; its texts reach code only as quoted literals.
    """
    package = project_name(name).replace("-", "_")
    title = msgspec.json.encode(f"Singer tap for {api.title}").decode()
    files = {
        ".github/workflows/ci.yml": fill("ci.yml"),
        ".gitignore": ".venv/\n__pycache__/\n*.egg-info/\nconfig.json\nstate.json\n",
        "README.md": _readme(name, api),
        "config.sample.json": _json(sample_config(api)),
        "pyproject.toml": fill("pyproject.toml", name=name, package=package, distribution=DISTRIBUTION, title=title),
        f"{package}/__init__.py": fill("package_init.py", name=name, package=package),
        f"{package}/__main__.py": fill("package_main.py", package=package),
        f"{package}/config.py": config_file(package, api),
        f"{package}/py.typed": "",
        f"{package}/streams.py": streams_file(package, api),
        "tests/__init__.py": '"""The tests of the tap."""\n',
        "tests/answers.json": _json(answers(api)),
        "tests/stand_in.py": fill("stand_in.py"),
        "tests/test_tap.py": test_file(package, api),
    }
    return files | {f"{package}/schemas/{plan.name}.json": _json(plan.schema) for plan in api.streams}


def write_project(folder: Path, files: Mapping[str, str]) -> None:
    """Write the files of a new project, all or none.

    Raises:
        ConfigError: the folder exists, or cannot be written.
    """
    if os.path.lexists(folder):
        raise ConfigError("exists already; choose another name, or --into another folder", str(folder))
    part = folder.with_name(f".{folder.name}.{os.urandom(4).hex()}.part")
    try:
        for path, text in files.items():
            file = part / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        os.rename(part, folder)  # fails where the folder has appeared meanwhile, unless it is empty
    except OSError as error:
        raise ConfigError(f"cannot be written: {error.strerror}", str(folder)) from None
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def _readme(name: str, api: ApiDescription) -> str:
    rows = "".join(
        f"| {plan.name} | {_shown(', '.join(plan.keys)) or '–'} | {_shown(plan.replication_key) or 'full table'} "
        f"| `{_shown(plan.path)}` |\n"
        for plan in api.streams
    )
    skipped = "".join(f"- {_shown(line)}\n" for line in api.skipped[:100])
    left_out = f"\nNot generated:\n\n{skipped}" if skipped else ""
    return fill(
        "README.md",
        name=name,
        distribution=DISTRIBUTION,
        streams=rows or "| – | – | – | – |\n",
        sign_in=api.sign_in.note,
        left_out=left_out,
        title=_shown(api.title),
    )


def _shown(text: str) -> str:
    """Return a text without characters that Markdown or HTML would act on."""
    return "".join(" " if char in "|`<>[]\n" else char for char in text)


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


_RECORDS = 3
_MAX_DEPTH = 6


def sample_config(api: ApiDescription) -> dict[str, Any]:
    """Return a config with a placeholder for each setting."""
    settings = {**api.sign_in.settings, **api.settings}
    config: dict[str, Any] = {"base_url": api.base_url or "https://api.example.com"}
    for name, value in settings.items():
        if name != "token_file":
            kind = value.get("type")
            text = f"your {name.replace('_', ' ')}"
            config[name] = value.get("default", text if kind == "string" else sample_value(value, 1))
    return config


def answers(api: ApiDescription) -> dict[str, Any]:
    """Return the answers of the stand-in by path, and the parameters by which it filters."""
    records: dict[str, list[Any]] = {}
    responses: dict[str, Any] = {}
    filters: dict[str, list[str]] = {}
    for plan in api.streams:
        for parent in records.get(plan.parent.name, []) if plan.parent is not None else [None]:
            path = _filled(plan.path, parent)
            before = records.setdefault(plan.name, [])
            own = {name: value for name, value in plan.schema["properties"].items() if name not in plan.from_parent}
            samples = [
                {name: sample_value(value, len(before) + number) for name, value in own.items()}
                for number in range(1, _RECORDS + 1)
            ]
            before += samples
            responses[path] = {plan.items: samples} if plan.items else samples
            if plan.replication_key:
                filters[path] = [plan.since, plan.replication_key, plan.items]
    if "token_url" in api.sign_in.settings:
        responses["/token"] = {"access_token": "token-of-the-tests", "token_type": "bearer", "expires_in": 3600}
    return {"answers": responses, "filters": filters}


def sample_value(schema: Mapping[str, Any], number: int, depth: int = 0) -> Any:
    """Return a value of a schema; numbers and texts differ by a number."""
    if depth > _MAX_DEPTH:
        return None
    for keyword in ("anyOf", "allOf"):
        parts = [part for part in schema.get(keyword, ()) if part != {"type": "null"}]
        if parts and "type" not in schema:
            return sample_value(parts[0], number, depth + 1)
    kinds = schema.get("type", "string")
    kinds = [kinds] if isinstance(kinds, str) else kinds
    kind = next((each for each in kinds if each != "null"), "null")
    if kind == "object":
        return {name: sample_value(inner, number, depth + 1) for name, inner in schema.get("properties", {}).items()}
    if kind == "array":
        return [sample_value(schema["items"], number, depth + 1)] if schema.get("items") else []
    day = f"2026-01-{1 + number % 28:02}"
    text = {"date-time": f"{day}T00:00:00Z", "date": day}.get(str(schema.get("format")), f"text {number}")
    return {"integer": number, "number": number + 0.5, "boolean": True, "string": text}.get(kind)


def _filled(path: str, parent: Any) -> str:
    def fill(match: re.Match[str]) -> str:
        name = match[1]
        value = f"your {name.partition('.')[2].replace('_', ' ')}" if name.startswith("config.") else parent[name]
        return quote(str(value), safe="")

    return re.sub(r"\{([^{}]*)\}", fill, path)


def test_file(package: str, api: ApiDescription) -> str:
    """Return the tests: discovery, a sync, and the practices of Singer."""
    config = {**sample_config(api), "base_url": Code("source.url")}
    if "token_url" in api.sign_in.settings:
        config["token_url"] = Code('f"{source.url}/token"')
    counts = {plan.name: _RECORDS * (_RECORDS if plan.parent is not None else 1) for plan in api.streams}
    return fill(
        "test_tap.py",
        package=package,
        name=package.replace("_", "-"),
        config=literal(config, 4, len("return ")),
        counts=literal(counts, 0, len("RECORDS: dict[str, int] = ")),
    )
