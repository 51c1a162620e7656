"""The Jinja environment of pages: every text is escaped, and numbers are formatted in one way."""

from __future__ import annotations

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from balog.common.text import cut
from balog.ui import formats

_LONGEST = 400  # characters of a text in a page


def make_environment(package: str) -> Environment:
    """Return the environment for the templates of a package, and for those that all pages share."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("balog.ui")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        **{name: getattr(formats, name) for name in ("amount", "count", "minute", "seconds", "size", "span", "when")},
        "exact": repr,
        "percent": lambda part: f"{min(max(part, 0), 1):.1%}",
        "text": shown_text,
    }
    return environment


def shown_text(text: str | None) -> str:
    """Return a text without control characters, cut to the length that pages show."""
    shown = formats.printable(text)
    return cut(shown, _LONGEST)
