"""Checks the sources of a document's jobs against the topics: invalid names, and queues with several readers."""

from __future__ import annotations

from collections.abc import Iterator

from balog.delivery.document import ControlDocument, LoadedTable
from balog.errors import ConfigError
from balog.topics import Topics

__all__ = ["source_problems"]


def source_problems(document: ControlDocument, topics: Topics) -> Iterator[ConfigError]:
    """Yield the jobs that cannot read their sources. Connects to no server.

    If a topic is a queue (``Topic.keeps_groups`` is False), two readers would each get a part of its events. A filter
    can write a queue for each of them.
    """
    readers: dict[str, str] = {}
    for place, sources in _jobs(document):
        for source in dict.fromkeys(sources):
            first = readers.setdefault(source, place)
            try:
                is_shared = topics.topic(source).keeps_groups
            except ConfigError as error:
                yield ConfigError(error.reason, path=place)
                continue
            if first != place and not is_shared:
                yield ConfigError(
                    f"{first} reads the queue {source}, too, so each would get some of its events; give each a queue "
                    "of its own",
                    path=place,
                )


def _jobs(document: ControlDocument) -> Iterator[tuple[str, tuple[str, ...]]]:
    for number, part in enumerate(document.filters):
        if part.engine == "service":
            yield f"$.filters[{number}]", part.sources
    for number, table in enumerate(document.tables):
        if not isinstance(table, LoadedTable):
            yield f"$.tables[{number}]", table.sources
    for number, callback in enumerate(document.callbacks):
        yield f"$.callbacks[{number}]", (callback.source,)
