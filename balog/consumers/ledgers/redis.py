"""A ledger in Redis, shared by the machines of a team."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from balog.consumers.ledgers.ledger import DEFAULT_WINDOW, LedgerEntry
from balog.consumers.ledgers.redis_place import RedisPlace

_PIPELINE = 1000


class RedisLedger:
    """A hash for each event and group, ``balog:ledger:GROUP:EVENT``, with its own expiry.

    The server's settings decide how durable an entry is when ``record`` returns: ``appendfsync always`` writes it to
    the disk first, ``everysec`` may lose a second, and a server without an append-only file loses all entries when it
    dies. After a loss, a handler can run twice for an event. Redis must not evict (``maxmemory-policy noeviction``).

    Args:
        server: the database.
        window: seconds that an entry is kept at least; a later entry for the same event restarts the time.
    """

    def __init__(self, server: RedisPlace, window: float = DEFAULT_WINDOW) -> None:
        self._place = server
        self._window = max(1, math.ceil(window))

    def __repr__(self) -> str:
        return f"RedisLedger({self._place.name!r}, window={self._window})"

    def known(self, group: str, events: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
        """Return the entries of events, a thousand per round trip; see ``Ledger``."""
        entries: dict[str, dict[str, str]] = {}
        for start in range(0, len(events), _PIPELINE):
            some = events[start : start + _PIPELINE]
            for event, fields in zip(some, self._place.run([("HGETALL", _key(group, event)) for event in some])):
                if fields:
                    entries[event] = {_text(name): _text(reason) for name, reason in fields.items()}
        return entries

    def record(self, group: str, entries: Sequence[LedgerEntry], *, durable: bool = True) -> None:
        """Write entries; all of one event, or none of them."""
        by_event: dict[str, dict[str, str]] = {}
        for entry in entries:
            by_event.setdefault(entry.event, {})[entry.consumer] = entry.gave_up
        commands: list[tuple[Any, ...]] = []
        for event, reasons in by_event.items():
            key = _key(group, event)
            pairs = [part.encode("utf-8", "backslashreplace") for pair in reasons.items() for part in pair]
            commands += [("HSET", key, *pairs), ("EXPIRE", key, self._window)]
        for start in range(0, len(commands), _PIPELINE):
            self._place.run(commands[start : start + _PIPELINE])

    def close(self) -> None:
        """Close the connections; a later use opens them again."""
        self._place.close()


def _key(group: str, event: str) -> str:
    return f"balog:ledger:{quote(group, safe='')}:{event}"


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
