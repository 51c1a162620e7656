"""The Jinja environment of pages: every text is escaped, and numbers are formatted in one way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from balog.common.text import cut
from balog.ui import formats

_LONGEST = 400  # characters of a text in a page


def make_environment(
    package: str, filters: Mapping[str, Any] | None = None, functions: Mapping[str, Any] | None = None
) -> Environment:
    """Return the environment for the templates of a package, and for those that all pages share.

    Args:
        package: the package; its folder ``templates`` has the templates.
        filters, functions: further ones for them.
    """
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("balog.ui")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    names = ("amount", "count", "minute", "seconds", "size", "span", "when")
    environment.filters.update({name: getattr(formats, name) for name in names}, exact=repr, text=shown_text)
    environment.filters.update(filters or {}, percent=lambda part: f"{min(max(part, 0), 1):.1%}")
    environment.globals.update(functions or {})
    return environment


def shown_text(text: str | None) -> str:
    """Return a text without control characters, cut to the length that pages show."""
    shown = formats.printable(text)
    return cut(shown, _LONGEST)
