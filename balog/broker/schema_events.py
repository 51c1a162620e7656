"""Events of the SCHEMA messages that a broker reads, for monitors of the kind schema."""

from __future__ import annotations

from collections.abc import Callable

from balog.broker.editor import Editor
from balog.broker.messages.schema_reader import SchemaReader
from balog.broker.metrics import stage_context
from balog.common.errors import EventError
from balog.common.redaction import Redactor
from balog.event import Event, encode
from balog.sinks import Delivery


class SchemaEvents(Editor):
    """An editor that changes nothing: it makes an event of each SCHEMA that differs from the stream's last one.

    Args:
        pipeline: its name.
        put: called with each event.
    """

    is_strict = False
    types = frozenset({"SCHEMA"})
    streams: frozenset[str] | None = frozenset()

    def __init__(self, pipeline: str, put: Callable[[Delivery], None]) -> None:
        self._channel = f"{pipeline}.schema"
        self._context = {**stage_context(pipeline), "application": pipeline}
        self._put = put
        self._reader = SchemaReader()
        self._redactor = Redactor()

    def edit(self, kind: str, line: bytes) -> None:
        """See ``Editor``."""
        payload = self._reader.read(line)
        if payload is None:
            return
        try:
            event = Event.new(self._channel, payload, context=self._context)
            body = encode(event)
            clean = self._redactor.redact_encoded(body)
            self._put(Delivery(event if clean is body else None, clean))
        except (EventError, UnicodeError):
            return  # a schema that is too deep for an event passes without one
