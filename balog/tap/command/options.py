"""The options of every tap, in the names that Singer, singer-python and the Meltano SDK gave them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from balog.tap.config import environment_name

if TYPE_CHECKING:
    from balog.tap.tap import Tap

__all__ = ["options"]


def options(tap: Tap) -> click.Command:
    """Give a click command that reads a tap's options; ``--catalog`` is also in ``TAP_COOL_CATALOG`` and so on.

    A variable that the tap's config has a setting for is not taken for an option.
    """

    def variable(option: str) -> str | None:
        name = environment_name(tap.name, option)
        return None if name in {environment_name(tap.name, setting) for setting in tap.spec.settings} else name

    def file(option: str, short: str, help: str) -> click.Option:
        name = f"--{option.replace('_', '-')}"
        return click.Option([*filter(None, [short]), name, option], metavar="PATH", envvar=variable(option), help=help)

    return click.Command(
        tap.name,
        help=f"{tap.name}, a Singer tap: writes what its source has to stdout, everything else to stderr.",
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
        params=[
            click.Option(
                ["-c", "--config", "config"],
                metavar="PATH",
                multiple=True,
                type=click.Path(),  # so that several in the variable are parted by ":", as in PATH
                envvar=variable("config"),
                help="A JSON file, a .env file, or ENV for the environment. Repeatable: the later counts.",
            ),
            file("state", "-s", "A JSON file: the last STATE of the run before."),
            file("catalog", "", "A JSON file: what --discover wrote, with what is selected."),
            file("properties", "-p", "The same by its older name, selected inside of the schemas."),
            file("out_file", "-o", "Write each state there, too, before it goes out."),
            click.Option(["-d", "--discover", "discover"], is_flag=True, help="Write the catalog, and sync nothing."),
            click.Option(
                ["-t", "--test", "test"],
                is_flag=True,
                help="Ask each selected stream for its first record; say on stderr what came, and write nothing.",
            ),
            click.Option(["--about", "about"], is_flag=True, help="Say what the tap is: settings, streams."),
            click.Option(
                ["--format", "format"], type=click.Choice(["text", "json"]), default="text", help="Of --about."
            ),
            click.Option(["--version", "version"], is_flag=True, help="Say the version."),
        ],
    )
