"""``balog state``: load, show and compare the STATE that a broker has stored."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import click
import msgspec

from balog.cli.shared import options
from balog.cli.shared.output import age, print_table
from balog.common import config as configs
from balog.common.errors import BalogError, ConfigError
from balog.common.storage import Options, Storage, StorageError, open_storage
from balog.common.text import printable
from balog.singer.bookmarks import bookmarks, changes

_config = click.option("--config", metavar="FILE", help="Broker's config; its state.store and state.options are used.")


@click.group(cls=options.CommandGroup)
def command() -> None:
    """Read the STATE that a broker has stored.

    \b
    broker.json: {"sinks": [], "state": {"store": "s3://bucket/state.json"}}
    tap --state <(balog state load s3://bucket/state.json) | target | balog broker --config broker.json

    A store is a path or a URL that fsspec supports. Credentials and endpoints come from the environment (AWS_…,
    FSSPEC_…), from --options or from --config.
    """


@command.command()
@click.argument("url", required=False)
@_config
@options.store
@click.option("--or-empty", is_flag=True, help="Print {} if nothing is stored yet, for a first run.")
def load(url: str | None, config: str | None, options_file: str | None, or_empty: bool) -> None:
    """Print the stored value exactly as the tap wrote it.

    Prints nothing and exits with 1 if nothing is stored, or if the stored value is not JSON.
    """
    storage = _open(url, config, options_file)
    data = storage.read()
    if data is None:
        if not or_empty:
            raise StorageError(f"{storage.url}: nothing is stored there; use --or-empty for a first run")
        data = b"{}\n"
    else:
        _check(data, storage)
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


@command.command()
@click.argument("url", required=False)
@_config
@options.store
def show(url: str | None, config: str | None, options_file: str | None) -> None:
    """Show the time of the stored value, and its bookmarks by stream."""
    storage = _open(url, config, options_file)
    value = _read(storage)
    modified = storage.modified()
    written = f", written {modified:%Y-%m-%d %H:%M:%S} UTC, {age(modified)}" if modified is not None else ""
    click.echo(f"{storage.url}{written}")
    _table(("stream", "bookmark", "value"), bookmarks(value))


@command.command()
@click.argument("before")
@click.argument("after")
@options.store
def diff(before: str, after: str, options_file: str | None) -> None:
    """Show the bookmarks that differ between BEFORE and AFTER."""
    old, new = (_read(_open(url, None, options_file)) for url in (before, after))
    differences = changes(old, new)
    if differences:
        rows = [(change.stream, change.name, change.before or "–", change.after or "–") for change in differences]
        _table(("stream", "bookmark", "before", "after"), rows)


def _open(url: str | None, config: str | None, options_file: str | None) -> Storage:
    if (url is None) == (config is None):
        raise click.UsageError("give either the URL or --config FILE with a state.store")
    if config is not None:
        if options_file is not None:
            raise click.UsageError("--options needs a URL; with --config, set state.options there")
        from balog.broker.config import BrokerConfig

        state = configs.load(config, BrokerConfig).state
        if state is None or state.store is None:
            raise ConfigError("has no store; give the URL instead", config, "$.state")
        url, given = state.store, state.options
    else:
        given = configs.load(options_file, Options) if options_file is not None else {}
    try:
        return open_storage(url or "", given, field="store" if config else "URL")
    except ConfigError as error:
        path = f"$.state.{error.path}" if config else f"{url}" if error.path == "URL" else f"$.{error.path}"
        source = config or (options_file if error.path.startswith("options") else "") or ""
        raise ConfigError(error.reason, error.source or source, path.replace("$.options.", "$.", 1)) from None


def _read(storage: Storage) -> Any:
    data = storage.read()
    if data is None:
        raise StorageError(f"{storage.url}: nothing is stored there")
    _check(data, storage)
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BalogError(f"{storage.url}: its JSON cannot be shown: {error}") from None


def _check(data: bytes, storage: Storage) -> None:
    """Raise BalogError if data is not JSON, without converting its numbers."""
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
        str(data, "utf-8")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        reason = f"{len(data)} bytes that are not JSON; was the file cut off or edited?"
        raise BalogError(f"{storage.url}: {reason}") from None


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    print_table([head, *([printable(cell) for cell in row] for row in rows)])
