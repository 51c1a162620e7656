"""What a home of topics says of a document: names that its topics can't have, queues that only one job may read."""

from __future__ import annotations

from collections.abc import Iterator

from balog.delivery.document import ControlDocument, LoadedTable
from balog.errors import ConfigError
from balog.topics import Topics

__all__ = ["source_problems"]


def source_problems(document: ControlDocument, topics: Topics) -> Iterator[ConfigError]:
    """Find jobs that this home can't feed. No server is asked.

    Where a topic is a queue (``Topic.keeps_groups`` is False), each of two that read it would get some of its events. A
    filter can write each of them a queue of its own.
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
