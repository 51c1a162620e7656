"""``balog callbacks``: list and enable the callbacks whose endpoints answered 410."""

from __future__ import annotations

import sys
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path

import click
import msgspec

from balog import config as configs
from balog.cli import options
from balog.cli.output import reporter
from balog.delivery.jobs.callbacks.switch import DisabledCallbacks, place_of
from balog.delivery.settings import ServiceConfig

_report = reporter("balog callbacks")
_config = options.config("The config of `balog serve`.", required=True, type=options.FilePath(path_type=Path))


@click.group(
    "callbacks",
    cls=options.CommandGroup,
    epilog="\b\nExit codes:\n0  done\n1  failed, or no such callback is disabled\n2  wrong use",
)
def command() -> None:
    """List and enable callbacks. An endpoint that answers 410 disables its callback until you enable it.

    \b
    balog callbacks disabled --config service.json
    balog callbacks enable partner --config service.json

    Services apply this within seconds. A change to the config of a callback enables it, too.
    """


@command.command(short_help="List the disabled callbacks.")
@_config
@click.option("--json", "as_json", is_flag=True, help="JSON, one object a line.")
def disabled(path: Path, as_json: bool) -> None:
    """List the disabled callbacks: name, since when, and why."""
    with _opened(path) as known:
        for one in known.all():
            if as_json:
                click.echo(msgspec.json.encode(one))
            else:
                since = datetime.fromtimestamp(one.since, timezone.utc).isoformat(" ", "seconds")
                click.echo(f"{one.name}\t{since}\t{one.reason}")


@command.command(short_help="Enable a callback.")
@click.argument("name", metavar="NAME")
@_config
def enable(name: str, path: Path) -> None:
    """Enable the callback NAME. It posts the events that waited first."""
    with _opened(path) as known:
        was_disabled = known.remove(name)
    if not was_disabled:
        _report(f"{name} is not disabled")
        sys.exit(1)
    _report(f"{name} is enabled again")


def _opened(path: Path) -> closing[DisabledCallbacks]:
    config = configs.load(path, ServiceConfig)
    return closing(DisabledCallbacks(place_of(config.control, config.topics), config.control_options))
