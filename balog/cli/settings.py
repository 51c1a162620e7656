"""Options that several commands share: ``NAME=VALUE`` pairs, and what is said of a package of handlers."""

from __future__ import annotations

from collections.abc import Sequence

import click

from balog.errors import ConfigError

__all__ = ["as_pairs", "ignore_option", "set_option"]


def as_pairs(context: click.Context, option: click.Parameter, given: Sequence[str]) -> dict[str, str]:
    """Read what a repeated option was given; the last one of a name counts. A ``callback`` of click.

    Raises:
        ConfigError: one of another form.
    """
    pairs = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise ConfigError(f"{option.opts[0]} {text!r:.100}: want {option.metavar}")
        pairs[name] = value
    return pairs


set_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    callback=as_pairs,
    help="A setting; fills {key} in topic names. Repeatable.",
)
ignore_option = click.option(
    "--ignore",
    multiple=True,
    metavar="NAME",
    help="A module to leave out: dotted, or .name below the package. Repeatable.",
)
