"""``balog token``: add, list and revoke the bearer tokens of an event service."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, get_args

import click
import msgspec

from balog.cli.shared import options
from balog.cli.shared.output import print_table
from balog.common.text import printable
from balog.service.api.tokens import Right, TokenEntry, add_token, make_token, read_tokens, revoke_tokens

_PATH = options.FilePath(path_type=Path)
_file = click.option("--file", "path", metavar="FILE", required=True, type=_PATH, help="File of tokens.")


@click.group("token", cls=options.CommandGroup)
def command() -> None:
    """Add, list and revoke the bearer tokens of an event service.

    A running service reads a changed file within a second.

    \b
    balog token add shop --may send --types 'order*' --days 90 --file tokens.json
    balog token add ops --may read --may configure --file tokens.json
    balog token list --file tokens.json
    balog token revoke shop --file tokens.json
    """


@command.command(short_help="Create a token and print it once.")
@click.argument("name")
@options.repeated("--may", metavar=None, type=click.Choice(get_args(Right)), default=("send",), show_default=True,
          help="Right of the token.")  # fmt: skip
@options.repeated("--types", metavar="GLOB", default=("*",), show_default=True,
          help="cls_type of the events and schemas that the token covers.")  # fmt: skip
@click.option("--days", type=click.FloatRange(0, 36_500, min_open=True), metavar="N",
              help="Days until the token expires.  [default: never]")  # fmt: skip
@click.option("--file", "path", metavar="FILE", type=_PATH, help="File of tokens to add the entry to.")
def add(name: str, may: tuple[Any, ...], types: tuple[str, ...], days: float | None, path: Path | None) -> None:
    """Create a bearer token and print it once; the file of tokens keeps only its hash.

    The token goes to stdout, its entry to --file or else to stderr. Two entries may share a name, so that you can
    replace a token without a gap.
    """
    expires = None if days is None else datetime.now(timezone.utc).replace(microsecond=0) + timedelta(days=days)
    token, entry = make_token(name, may, types, expires=expires)
    if path is not None:
        add_token(path, entry)
    else:
        click.echo(msgspec.json.encode(entry).decode(), err=True)
    click.echo(token)


@command.command("list", short_help="List the tokens of a file.")
@_file
def list_tokens(path: Path) -> None:
    """List the tokens of a file: name, rights, types, expiry, and first digits of the hash."""
    print_table([("NAME", "MAY", "TYPES", "EXPIRES", "HASH"), *map(_row, read_tokens(path))])


@command.command(short_help="Revoke the tokens of a name.")
@click.argument("name")
@click.option("--hash", "hash_", default="", metavar="START", help="Revoke only the token whose hash begins with this.")
@_file
def revoke(name: str, hash_: str, path: Path) -> None:
    """Revoke the tokens of a name: remove them from the file. A running service rejects them within a second.

    Exits with 1 if there is none.
    """
    revoked = revoke_tokens(path, name, hash_)
    for entry in revoked:
        click.echo(f"{entry.name} {_short(entry)}: revoked")
    if not revoked:
        click.echo(f"{path}: no such token; balog token list --file {path} lists all", err=True)
        sys.exit(1)


def _row(entry: TokenEntry) -> tuple[str, ...]:
    expires = "-"
    if entry.expires is not None:
        expires = entry.expires.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%MZ")
        expires += " (expired)" if entry.expires <= datetime.now(timezone.utc) else ""
    return entry.name, ",".join(entry.may), printable(",".join(entry.types)), expires, _short(entry)


def _short(entry: TokenEntry) -> str:
    return entry.hash[:19]
