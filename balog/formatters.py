"""The formatter of the standard library's records, under the name that it had in the first balog."""

from __future__ import annotations

from typing import Any

from balog.handlers import EventFormatter
from balog.handlers.records import Naming

__all__ = ["SchemaFormatter"]


class SchemaFormatter(EventFormatter):
    """Formats a record as an event, with the logger's name as its channel: ``root`` for the root logger.

    The arguments are those of :class:`balog.handlers.EventFormatter`.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.naming = Naming(self.naming.channel, self.naming.prefix, root="root")
