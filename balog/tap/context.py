"""What a stream's function is given beside the client."""

from __future__ import annotations

from typing import Any

import structlog

from balog.tap.bookmarks import State
from balog.tap.catalog import Entry
from balog.tap.streams import Stream

__all__ = ["Context"]


class Context:
    """One stream in one sync.

    Attributes:
        stream: the stream's name.
        config: the tap's, as its spec gives it.
        bookmark: where to go on from: the state's, else ``start_date`` of the config, less the lookback; None on a
            first run without one, and for full tables.
        entry: the stream's catalog entry: schema, metadata, selection.
        log: a logger with the stream bound.
    """

    def __init__(
        self, stream: Stream, entry: Entry, config: Any, state: State, log: structlog.BoundLoggerBase | Any
    ) -> None:
        self.stream = stream.name
        self.config = config
        self.entry = entry
        self.log = log
        self.bookmark: Any = state.get(stream.name, stream.replication_key) if stream.replication_key else None
