"""Schemas that are inferred from a stream's first records."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, closing, nullcontext
from itertools import islice
from typing import Any

import balog
from balog.tap.bookmarks import State
from balog.tap.catalog import CatalogEntry
from balog.tap.errors import SchemaError, SourceError
from balog.tap.streams import Providers, Stream
from balog.tap.streams.context import Context

_MAX_RECORDS = 1000
_MAX_PARENTS = 20


def inferred_schema(stream: Stream, client: Callable[[], Any], config: Callable[[], Any]) -> dict[str, Any]:
    """Return the schema of a stream's first 1000 records, those of a substream for its first 20 parents.

    Args:
        stream: the stream. Its function is called as in a first run, and its context writes nothing.
        client: returns the tap's client.
        config: returns the tap's config.

    Raises:
        SourceError: there are no records, or one is invalid, which other streams need not mind.
    """
    from balog.tap.schema import infer

    try:
        with closing(_records(stream, client, config)) as records:
            return infer(records, _MAX_RECORDS, stream.key_properties)
    except SchemaError as error:
        raise SourceError(error.reason) from None


class _Nothing:
    """The run of a sample: its contexts write nothing."""

    is_stopping = False
    highest = None

    def emit(self, record: Any, stream: str) -> None:
        """Ignore a record."""

    def set_bookmark(self, value: Any) -> None:
        """Ignore a bookmark."""

    def checkpoint(self, *, asked: bool) -> None:
        """Write no state."""

    def quarantine(self, record: Any, reason: str) -> None:
        """Ignore what is not a record."""

    def full_table(self) -> AbstractContextManager[int]:
        """Return a version that is not written."""
        return nullcontext(0)

    def context_of(self, stream: str) -> Context:
        """Raise: there is no other stream."""
        raise SchemaError(f"context.of({stream!r}) can't be used for records of an inferred schema")


def _records(stream: Stream, client: Callable[[], Any], config: Callable[[], Any]) -> Generator[Any, None, None]:
    if not isinstance(stream.parent, Stream):
        yield from _call(stream, client, config, None)
        return
    with closing(_records(stream.parent, client, config)) as parents:
        for parent in islice(parents, _MAX_PARENTS):
            yield from _call(stream, client, config, parent)


def _call(
    stream: Stream, client: Callable[[], Any], config: Callable[[], Any], parent: Any
) -> Generator[Any, None, None]:
    entry = CatalogEntry(tap_stream_id=stream.name, stream=stream.name, schema={})
    own = stream.client
    providers: Providers = {
        "client": (lambda: own(config())) if own is not None else client,
        "config": config,
        "context": lambda: context,
        "parent": lambda: parent,
    }
    log = balog.get_logger("balog.tap.schema")
    context = Context(stream, entry, config(), State(), log, client=providers["client"], parent=parent, run=_Nothing())
    items = stream.call(providers)
    try:
        for item in items:
            yield from item if isinstance(item, list) else (item,)
    finally:
        close = getattr(items, "close", None)
        if callable(close):
            close()
