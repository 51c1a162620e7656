"""The formatter of the standard library's records, under the name that it had in the first balog."""

from __future__ import annotations

from typing import Any

from balog.log.stdlib import EventFormatter

__all__ = ["SchemaFormatter"]


_LAYOUT_MARKS = frozenset("%{$")


class SchemaFormatter(EventFormatter):
    """Formats a record as an event, with the logger's name as its channel: ``root`` for the root logger.

    The arguments are those of :class:`balog.log.stdlib.EventFormatter`. A format of the standard library, such as
    ``%(message)s``, is ignored, as in the first balog.
    """

    _root = "root"

    def __init__(self, fmt: str | None = None, *args: Any, **options: Any) -> None:
        is_layout = isinstance(fmt, str) and not _LAYOUT_MARKS.isdisjoint(fmt)
        super().__init__(None if is_layout else fmt, *args, **options)
