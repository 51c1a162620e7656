"""Reads the source of a stream: calls its function, and passes its items on."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from balog.tap.errors import TapError
from balog.tap.streams import Providers
from balog.tap.syncing.interrupts import Interrupted
from balog.tap.syncing.pipeline import StreamParts

_FLUSH_SECONDS = 5.0
"""After this time within one parent record, written records are flushed and the parents' bookmarks are checkpointed."""


class SourceReader:
    """Reads the source of one stream, of a substream once for each parent.

    Args:
        sync: the sync of the stream.
        accept: called with each item that its function yields.
        flush: called each few seconds while the items of a parent come.
    """

    def __init__(self, sync: StreamParts, accept: Callable[[Any], None], flush: Callable[[], None]) -> None:
        self._sync, self._session, self._stream, self._context = sync, sync.session, sync.stream, sync.context
        self._accept, self._flush = accept, flush

    def read(self, parent: Any = None) -> None:
        """Read all items.

        Args:
            parent: the record of the parent.
        """
        stream, session, context = self._stream, self._session, self._context
        providers: Providers = {
            "client": lambda: session.clients.of(stream),
            "config": lambda: session.config,
            "context": lambda: context,
            "parent": lambda: parent,
        }
        context.parent = parent
        try:
            self._pass_on(self._call(providers))
        finally:
            session.stop.in_source = session.is_calling = False

    def _call(self, providers: Providers) -> Any:
        session = self._session
        session.stop.in_source = True
        session.stop.check()
        progress = self._sync.progress
        if progress.key is None:
            self._context.log_position = progress.bookmark
        session.is_calling = True
        items = self._stream.call(providers)
        session.is_calling = False
        return items

    def _pass_on(self, items: Any) -> None:
        stream, stop, accept = self._stream, self._session.stop, self._accept
        is_inner = self._sync.parent is not None
        if isinstance(items, (Mapping, str, bytes)):
            raise TapError(f"{stream.title}: returned a {type(items).__name__}: want records, yielded or in a list")
        monotonic = time.monotonic
        due = monotonic() + _FLUSH_SECONDS
        try:
            for item in items:
                stop.in_source = False
                accept(item)
                if is_inner and monotonic() >= due:
                    self._flush()
                    due = monotonic() + _FLUSH_SECONDS
                stop.in_source = True
                if stop.number is not None:
                    raise Interrupted(stop.number)
            stop.in_source = False
            stop.check()  # the source may have ended early because of it
        finally:
            stop.in_source = False
            close = getattr(items, "close", None)
            if close is not None and hasattr(items, "send"):  # let a generator that was not exhausted clean up
                close()
