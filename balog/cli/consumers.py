"""``balog consumers``: list the handlers of a package."""

from __future__ import annotations

import os
import sys

import click

from balog.cli.shared import options
from balog.cli.shared.output import print_table
from balog.common.errors import ConfigError
from balog.consumers import ConsumerHub, ConsumerOperator
from balog.consumers.running.listing import describe, unmet_version


@click.group(cls=options.CommandGroup)
def command() -> None:
    """List the handlers of a package."""


@command.command("list", short_help="List each handler's topic, events and options.")
@click.argument("package")
@options.settings
@click.option("--strict", is_flag=True, help="Exit with 1 if there is a warning.")
def show(package: str, settings: dict[str, str], strict: bool) -> None:
    """List the @consumer_config handlers of PACKAGE: the topic, the events and the options of each.

    PACKAGE is a dotted name; the current directory is searched first. The package is imported; no handler runs. A
    version condition that no event of this release meets is a warning on stderr: such a handler gets no event.
    Exit codes: 0 done, 1 a module can't be imported, 2 wrong use.

    \b
    balog consumers list mypackage --set env=prod
    """
    hub = scan_package(package)
    operator = ConsumerOperator(settings)
    warnings = [line for consumer in hub.consumers if (line := unmet_version(consumer)) is not None]
    listed = [describe(consumer, operator) for consumer in hub.consumers]
    print_table([(entry.consumer, entry.topic, "; ".join(entry.wants + entry.handling)) for entry in listed])
    for line in warnings:
        click.echo(f"balog consumers: {line}", err=True)
    if warnings and strict:
        sys.exit(1)


def scan_package(package: str) -> ConsumerHub:
    """Find the handlers of a package, first in the current directory.

    Raises:
        ConfigError: the package has no handlers.
    """
    sys.path.insert(0, os.getcwd())
    hub = ConsumerHub()
    hub.scan(package)
    if not hub.consumers:
        raise ConfigError(f"{package} has no consumers: no function in it has @consumer_config")
    return hub
