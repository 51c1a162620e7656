"""The loop over streams and records."""

from __future__ import annotations

from typing import Any

import balog
from balog.tap.bookmarks import State
from balog.tap.catalog import Catalog
from balog.tap.context import Context
from balog.tap.records import Output, Transformer
from balog.tap.streams import Stream
from balog.tap.tap import Tap

__all__ = ["Sync"]


class Sync:
    """One run.

    Args:
        tap: what is declared.
        config: as its spec gave it.
        catalog: what is selected.
        state: from where; written to as it goes on.
        output: where messages go.
    """

    def __init__(self, tap: Tap, config: Any, catalog: Catalog, state: State, output: Output) -> None:
        self.tap = tap
        self.config = config
        self.catalog = catalog
        self.state = state
        self.output = output
        self.log = balog.get_logger(tap.name.replace("-", "_"))

    def run(self) -> None:
        """Sync all that is selected."""
        client = self.tap.make_client(self.config) if self.tap.make_client else None
        for stream in self.tap.streams.values():
            if stream.name in self.catalog.entries and self.catalog.entries[stream.name].is_selected:
                self._sync(stream, client)
        self.state.currently_syncing = None
        self.output.state(self.state.as_json())

    def _sync(self, stream: Stream, client: Any) -> None:
        entry = self.catalog.entries[stream.name]
        self.state.currently_syncing = stream.name
        key = stream.replication_key
        self.output.schema(stream.name, entry.schema, stream.key_properties, [key] if key else [])
        context = Context(stream, entry, self.config, self.state, self.log.bind(stream=stream.name))
        transform, write, strategy = (
            Transformer(entry, stream.policy),
            self.output.records(stream.name),
            stream.strategy,
        )
        highest, count = self.state.get(stream.name, key) if key else None, 0
        for record in stream.records(client, context):
            made = transform(record)
            if made is None:
                continue
            write(made)
            count += 1
            if key and (highest is None or made[key] > highest):
                highest = made[key]
            if strategy.is_due(made, count):
                self.state.set(stream.name, key or "", highest)
                self.output.state(self.state.as_json())
        if key:
            self.state.set(stream.name, key, highest)
        self.output.state(self.state.as_json())
