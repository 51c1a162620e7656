"""``balog token``."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, get_args

import click
import msgspec

from balog.cli.groups import CommandGroup
from balog.cli.output import print_table
from balog.delivery.api.tokens import (
    Quota,
    Right,
    TokenEntry,
    add_token,
    make_token,
    read_tokens,
    revoke_tokens,
)

__all__ = ["command"]

_file = click.option(
    "--file", "path", metavar="FILE", required=True, type=click.Path(path_type=Path), help="The file of tokens."
)


@click.group("token", cls=CommandGroup)
def command() -> None:
    """Make, list and revoke the bearer tokens of a service.

    A service that runs reads a changed file again within a second.

    \b
    balog token add shop --may send --types 'order*' --days 90 --file tokens.json
    balog token add ops --may read --may configure --file tokens.json
    balog token list --file tokens.json
    balog token revoke shop --file tokens.json
    """


@command.command(short_help="Make a token; it is shown this once.")
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
    "--days",
    type=click.FloatRange(0, 36_500, min_open=True),
    metavar="N",
    help="It expires after N days; never if none.",
)
@click.option(
    "--quota",
    metavar="EVENTS[/SECONDS]",
    help="Events that it may send in that time, a day if none is given, at each service.",
)
@click.option(
    "--file",
    "path",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write the entry into this file of tokens.",
)
def add(
    name: str, may: tuple[Any, ...], types: tuple[str, ...], days: float | None, quota: str | None, path: Path | None
) -> None:
    """Make a bearer token for a service; it is shown this once, and only its hash is kept.

    The token goes to stdout, the entry for the file of tokens to stderr, or into --file. Two entries may have one name,
    so that a token is changed without a gap.
    """
    expires = None if days is None else datetime.now(timezone.utc).replace(microsecond=0) + timedelta(days=days)
    token, entry = make_token(name, may, types, expires=expires, quota=_quota(quota))
    if path is not None:
        add_token(path, entry)
    else:
        click.echo(msgspec.json.encode(entry).decode(), err=True)
    click.echo(token)


@command.command("list", short_help="List the tokens of a file.")
@click.option("--json", "as_json", is_flag=True, help="JSON, one object a line.")
@_file
def list_tokens(as_json: bool, path: Path) -> None:
    """List the tokens of a file: name, rights, types, expiry, quota, and the beginning of the hash.

    Tokens themselves are kept nowhere, so none is shown.
    """
    entries = read_tokens(path)
    if as_json:
        for entry in entries:
            click.echo(msgspec.json.encode(entry))
        return
    rows = [("NAME", "MAY", "TYPES", "EXPIRES", "QUOTA", "HASH"), *map(_row, entries)]
    print_table(rows)


@command.command(short_help="Take tokens out of a file.")
@click.argument("name")
@click.option("--hash", "hash_", default="", metavar="START", help="Only the token whose hash begins so.")
@_file
def revoke(name: str, hash_: str, path: Path) -> None:
    """Take the tokens of a name out of a file; a service that runs refuses them within a second.

    Exits with 1 where there is none.
    """
    gone = revoke_tokens(path, name, hash_)
    for entry in gone:
        click.echo(f"{entry.name} {_short(entry)}: revoked")
    if not gone:
        click.echo(
            f"{path}: there is no such token; balog token list --file {path} shows those that there are", err=True
        )
        sys.exit(1)


def _quota(text: str | None) -> Quota | None:
    if text is None:
        return None
    events, _, seconds = text.partition("/")
    try:
        return msgspec.convert({"events": int(events), "seconds": float(seconds or 86_400)}, Quota)
    except (ValueError, msgspec.ValidationError):
        raise click.BadParameter("want EVENTS or EVENTS/SECONDS, such as 1000/60", param_hint="--quota") from None


def _row(entry: TokenEntry) -> tuple[str, ...]:
    expires = "-"
    if entry.expires is not None:
        expires = entry.expires.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%MZ")
        expires += " (expired)" if entry.expires <= datetime.now(timezone.utc) else ""
    quota = "-" if entry.quota is None else f"{entry.quota.events}/{entry.quota.seconds:g}s"
    types = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in ",".join(entry.types))
    return entry.name, ",".join(entry.may), types, expires, quota, _short(entry)


def _short(entry: TokenEntry) -> str:
    return entry.hash[:19]
