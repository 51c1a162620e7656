"""Pages of Python's public names, for mkdocstrings: one a module, with the names in its ``__all__``."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any

FOLDER = "reference/python"
RANK = "---\nsearch:\n  boost: 0.5\n---\n\n"
"""Front matter: in the site's search, guides come before names of the same words."""

MODULES = (
    "balog",
    "balog.analytics",
    "balog.analytics.functions",
    "balog.common.errors",
    "balog.common.redaction",
    "balog.common.secrets",
    "balog.consumers",
    "balog.event",
    "balog.event.payload",
    "balog.filters",
    "balog.log.metrics",
    "balog.log.middleware",
    "balog.log.stdlib",
    "balog.registry",
    "balog.service",
    "balog.singer",
    "balog.sinks",
    "balog.tap",
    "balog.tap.bookmarks",
    "balog.tap.catalog",
    "balog.tap.config",
    "balog.tap.credentials",
    "balog.tap.endpoints",
    "balog.tap.http",
    "balog.tap.patterns",
    "balog.tap.records",
    "balog.tap.schema",
    "balog.tap.schema.types",
    "balog.tap.sql",
    "balog.tap.verify",
    "balog.tap.verify.testing",
    "balog.testing",
    "balog.testing.contracts",
    "balog.topics",
)


def pages() -> Iterator[tuple[str, str]]:
    """Yield the path and the Markdown of each page."""
    seen: dict[str, str] = {}
    for name in MODULES:
        yield f"{FOLDER}/{name}.md", RANK + page(importlib.import_module(name), seen)
    lines = [f"- [`{name}`]({name}.md): {summary(importlib.import_module(name))}" for name in MODULES]
    intro = "For everyone who writes Python with balog. After this page you know the modules whose names are public."
    yield f"{FOLDER}/index.md", RANK + "\n".join(["# Python", "", intro, "", *lines, ""])


def page(module: ModuleType, seen: dict[str, str]) -> str:
    """Return a page. A name that an earlier page describes is a link to it; ``seen`` has those, and gets new ones."""
    name = module.__name__
    parts = [f"# {name}", inspect.getdoc(module) or ""]
    again = []
    for path in (f"{place_of(getattr(module, each), name)}{each}" for each in public_names(module)):
        if path in seen:
            again.append(f"- [`{path.rpartition('.')[2]}`]({seen[path]}.md#{path})")
        else:
            seen[path] = name
            parts.append(f"::: {path}")
    return (
        "\n\n".join([*parts[:2], *(["\n".join(["Described elsewhere:", "", *again])] if again else []), *parts[2:]])
        + "\n"
    )


def public_names(module: ModuleType) -> list[str]:
    names = getattr(module, "__all__", None)
    if names is None:
        names = [
            name
            for name, value in vars(module).items()
            if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
        ]
    return sorted(name for name in names if not name.startswith("__"))


def place_of(value: Any, module: str) -> str:
    """Return the module of balog that defines a class or function, or the one given, with a dot."""
    defined = getattr(value, "__module__", None) if inspect.isclass(value) or inspect.isroutine(value) else None
    return f"{defined if defined and defined.startswith('balog') else module}."


def summary(module: ModuleType) -> str:
    return " ".join((inspect.getdoc(module) or "").split("\n\n")[0].split())
