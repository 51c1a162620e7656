"""A tap's command line: ``--config --state --catalog --properties --discover --test --about --out-file``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
import msgspec

from balog.tap.bookmarks import State
from balog.tap.catalog import Catalog, Entry
from balog.tap.records import Output

if TYPE_CHECKING:
    from balog.tap.tap import Tap

__all__ = ["run"]


def run(tap: Tap, arguments: Sequence[str] | None = None) -> None:
    """Run a tap as a program; ends the process: 0 done, 1 a stream failed, 2 wrong use or a config that is refused."""

    @click.command(name=tap.name)
    @click.option("--config", "-c", type=click.Path())
    @click.option("--state", "-s", type=click.Path())
    @click.option("--discover", "-d", is_flag=True)
    def command(config: str | None, state: str | None, discover: bool) -> None:
        from balog.tap.syncing import Sync

        read = lambda path: msgspec.json.decode(open(path, "rb").read()) if path else {}  # noqa: SIM115
        checked = tap.spec.check(read(config), config or "")
        catalog = Catalog()
        for stream in tap.link().values():
            schema = stream.schema(lambda: None, stream.name) if callable(stream.schema) else stream.schema or {}
            catalog.entries[stream.name] = Entry(
                tap_stream_id=stream.name,
                stream=stream.name,
                schema=schema,
                key_properties=stream.key_properties,
                replication_key=stream.replication_key,
                replication_method=stream.method,
                metadata={(): {"selected": True}},
            )
        if discover:
            sys.stdout.write(msgspec.json.format(msgspec.json.encode(catalog.as_json())).decode() + "\n")
            return
        Sync(tap, checked, catalog, State(read(state)), Output()).run()

    command(list(arguments) if arguments is not None else None)
