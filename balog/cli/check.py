"""``balog check``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from balog.broker.checking import find_problems, notes, reach
from balog.broker.config import BrokerConfig
from balog.broker.run_config import RunConfig
from balog.cli.brokers import SINGLE_SINKS, config_of

KINDS = ("broker", "run", *(f"broker-{name}" for name in SINGLE_SINKS))


@click.command()
@click.option(
    "--for", "kind", type=click.Choice(KINDS), default="broker", show_default=True, help="Whose config it is."
)
@click.option("--connect", is_flag=True, help="Try the other side of each sink too; nothing is delivered.")
@click.argument("path", metavar="CONFIG", type=click.Path(path_type=Path))
def command(path: Path, kind: str, connect: bool) -> None:
    """Find everything that is wrong with a config, each with its place and what would do.

    Exits with 0 when it can be used, 2 when it can't, 1 when a sink's other side is not there (--connect).
    """
    config, problems = find_problems(path, _type(kind))
    for problem in problems:
        click.echo(str(problem), err=True)
    if problems:
        click.echo(f"{path}: {len(problems)} problem{'s' * (len(problems) > 1)}", err=True)
        sys.exit(2)
    sinks = config.sinks if hasattr(config, "sinks") else [config]
    for note in notes(config):
        click.echo(f"{path}: note: {note}", err=True)
    click.echo(f"{path}: ok, {len(sinks)} sink{'s' * (len(sinks) != 1)}")
    failed = False
    for result in reach(sinks) if connect else ():
        click.echo(f"{result.name}: {result.trouble or 'is there'}")
        failed = failed or bool(result.trouble)
    sys.exit(1 if failed else 0)


def _type(kind: str) -> Any:
    if kind == "run":
        return RunConfig
    return BrokerConfig if kind == "broker" else config_of(kind.removeprefix("broker-"))
