"""What can be seen of callbacks before a service runs them."""

from __future__ import annotations

from collections.abc import Iterator

from balog.delivery.callbacks.endpoint import check_callback
from balog.delivery.document import Document, LoadedTable
from balog.errors import ConfigError

__all__ = ["callback_problems", "queue_problems"]


def callback_problems(document: Document) -> Iterator[ConfigError]:
    """Find what is wrong with the callbacks of a document, short of what only a service has, such as secrets."""
    names: set[str] = set()
    for number, callback in enumerate(document.callbacks):
        place = f"$.callbacks[{number}]"
        if callback.name in names:
            yield ConfigError(f"there are two callbacks {callback.name!r}; rename one", path=f"{place}.name")
        names.add(callback.name)
        try:
            check_callback(callback)
        except ConfigError as error:
            yield ConfigError(error.reason, path=f"{place}.{error.path}")


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
