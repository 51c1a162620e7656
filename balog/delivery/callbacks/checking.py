"""Where topics are queues, not everything can be read by everybody."""

from __future__ import annotations

from collections.abc import Iterator

from balog.delivery.document import Document, LoadedTable
from balog.errors import ConfigError

__all__ = ["queue_problems"]


def queue_problems(document: Document) -> Iterator[ConfigError]:
    """Find what can't be where topics are queues (``Topic.keeps_groups`` is False): two that read the same one.

    Each would get some of its events. A filter that a queue feeds can write each of them a queue of its own.
    """
    readers: dict[str, str] = {}
    parts = [
        *((f"$.filters[{n}]", part.sources) for n, part in enumerate(document.filters) if part.engine == "service"),
        *((f"$.tables[{n}]", part.sources) for n, part in enumerate(document.tables)
          if not isinstance(part, LoadedTable)),
        *((f"$.callbacks[{n}]", (part.source,)) for n, part in enumerate(document.callbacks)),
    ]  # fmt: skip
    for place, sources in parts:
        for source in dict.fromkeys(sources):
            first = readers.setdefault(source, place)
            if first != place:
                yield ConfigError(
                    f"{first} reads the queue {source}, too, and each event goes to one of them; give each a queue of "
                    "its own",
                    path=place,
                )
