"""The options of every tap, with the names of Singer, singer-python and the Meltano SDK, and what ``--about`` shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from balog.tap.config import environment_name

if TYPE_CHECKING:
    from balog.tap.definition import TapDefinition


def options(tap: TapDefinition) -> click.Command:
    """Return a click command that reads a tap's options; ``--catalog`` is also ``TAP_COOL_CATALOG``, and so on.

    A variable of a setting in the tap's config is not an option.
    """

    def variable(option: str) -> str | None:
        name = environment_name(tap.name, option)
        return None if name in {environment_name(tap.name, setting) for setting in tap.spec.settings} else name

    def file(option: str, short: str, help: str) -> click.Option:
        name = f"--{option.replace('_', '-')}"
        return click.Option([*filter(None, [short]), name, option], metavar="PATH", envvar=variable(option), help=help)

    return click.Command(
        tap.name,
        help=f"{tap.name}, a Singer tap: writes the records of its source to stdout, everything else to stderr.",
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
        params=[
            click.Option(
                ["-c", "--config", "config"],
                metavar="PATH",
                multiple=True,
                type=click.Path(),  # several in the variable are separated by ":", as in PATH
                envvar=variable("config"),
                help="A JSON file, or ENV for the environment. Repeatable; the last one wins.",
            ),
            file("state", "-s", "A JSON file: the last STATE of the previous run."),
            file("catalog", "", "A JSON file: the output of --discover, with the selection."),
            file("out_file", "-o", "Also write each state to this file, before its message."),
            click.Option(["-d", "--discover", "discover"], is_flag=True, help="Write the catalog and exit."),
            click.Option(
                ["--assert", "asserts"],
                is_flag=True,
                help="Check order, bookmarks and removed paths while syncing; exit with 1 if one is wrong.",
            ),
            click.Option(["--about", "about"], is_flag=True, help="Describe the tap as JSON: settings, streams."),
            click.Option(["--format", "format"], type=click.Choice(["json"]), help="As in the Meltano SDK."),
            click.Option(["--version", "version"], is_flag=True, help="Print the version."),
        ],
    )


CAPABILITIES = ("about", "catalog", "discover", "state")


def version_of(tap: TapDefinition) -> str:
    """Return the version of the distribution that has the tap's name; "" if there is none."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(tap.name)
    except (PackageNotFoundError, ValueError):
        return ""


def about(tap: TapDefinition) -> dict[str, Any]:
    """Return the tap's name, version, capabilities, config as JSON Schema (``settings``) and declared streams.

    ``finds_streams`` says whether it also finds streams in its source.
    """
    import balog

    return {
        "name": tap.name,
        "version": version_of(tap),
        "balog_version": balog.__version__,
        "capabilities": list(CAPABILITIES),
        "settings": tap.spec.json_schema(),
        "finds_streams": tap.finder is not None,
        "streams": [
            {
                "name": stream.name,
                "key_properties": list(stream.key_properties),
                "replication_method": stream.method,
                "replication_key": stream.replication_key,
                "parent": getattr(stream.parent, "name", None),
            }
            for stream in tap.streams.values()
        ],
    }
