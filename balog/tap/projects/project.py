"""A new project: all of its files, written into a folder that does not exist yet."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import msgspec

from balog.common.distribution import DISTRIBUTION
from balog.common.errors import ConfigError
from balog.tap.projects.model import ApiDescription, ApiSignIn, StreamPlan
from balog.tap.projects.names import project_name
from balog.tap.projects.python_files import config_file, streams_file
from balog.tap.projects.source_text import fill
from balog.tap.projects.stand_in_files import answers, sample_config, test_file


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
