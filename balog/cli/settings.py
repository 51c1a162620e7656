"""Options that several commands share: ``NAME=VALUE`` pairs, and those of a package of handlers."""

from __future__ import annotations

from collections.abc import Sequence

import click

from balog.errors import ConfigError

__all__ = ["as_pairs", "ignore_option", "set_option"]


def as_pairs(context: click.Context, option: click.Parameter, given: Sequence[str]) -> dict[str, str]:
    """Parse the values of a repeated ``NAME=VALUE`` option, as a ``callback`` of click. The last value of a name wins.

    Raises:
        ConfigError: a value has another form.
    """
    pairs = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise ConfigError(f"{option.opts[0]} {text!r:.100}: expected {option.metavar}")
        pairs[name] = value
    return pairs


set_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    callback=as_pairs,
    help="Setting that fills {KEY} in topic names. Repeatable.",
)
ignore_option = click.option(
    "--ignore",
    multiple=True,
    metavar="NAME",
    help="Module to skip: a dotted name, or .name inside the package. Repeatable.",
)
