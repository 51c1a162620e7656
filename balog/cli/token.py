"""``balog token``."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import click
import msgspec

from balog.delivery.api.tokens import Right, add_token, make_token


@click.command()
@click.argument("name")
@click.option(
    "--may",
    multiple=True,
    type=click.Choice(get_args(Right)),
    default=("send",),
    show_default=True,
    help="What it may do. Repeatable.",
)
@click.option(
    "--types",
    multiple=True,
    default=("*",),
    show_default=True,
    metavar="GLOB",
    help="cls_type of the events and schemas that it is for. Repeatable.",
)
@click.option(
    "--file",
    "path",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write the entry into this file of tokens, which a service that runs reads again by itself.",
)
def command(name: str, may: tuple[Any, ...], types: tuple[str, ...], path: Path | None) -> None:
    """Make a bearer token for a service; it is shown this once, and only its hash is kept.

    The token goes to stdout, the entry for the file of tokens to stderr, or into --file.

    \b
    balog token shop --may send --types 'order*' --file tokens.json
    balog token ops --may read --may configure --file tokens.json
    """
    token, entry = make_token(name, may, types)
    if path is not None:
        add_token(path, entry)
    else:
        click.echo(msgspec.json.encode(entry).decode(), err=True)
    click.echo(token)
