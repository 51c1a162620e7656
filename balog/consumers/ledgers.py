"""Ledgers by URL, and the default ledger of an engine."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import Path

from balog.consumers.ledger import DEFAULT_WINDOW, Ledger, LedgerEntry, Memory
from balog.consumers.ledger_sqlite import SqliteLedger
from balog.consumers.redis_place import option_seconds, split_options
from balog.errors import ConfigError
from balog.local_path import local_path, state_folder
from balog.plugins import PluginRegistry
from balog.topics import local_folder

__all__ = ["LEDGERS", "MemoryLedger", "NoLedger", "SqliteLedger", "default_ledger", "open_ledger"]

MAX_REMEMBERED = 1_000_000
"""Entries that a ledger in memory holds; it drops the oldest of more."""

_FORMS = "sqlite:PATH, redis://HOST:PORT/DB?password.env=NAME, memory: or none:"

LEDGERS = PluginRegistry(
    "balog.ledgers",
    {
        "sqlite": "balog.consumers.ledgers:_open_sqlite",
        "redis": "balog.consumers.ledgers:_open_redis",
        "rediss": "balog.consumers.ledgers:_open_redis",
        "memory": "balog.consumers.ledgers:_open_memory",
        "none": "balog.consumers.ledgers:_open_none",
    },
)
"""URL scheme -> a function that opens the ledger of a URL."""


class MemoryLedger:
    """Entries in this process's memory. They prevent duplicates only while the process lives.

    Args:
        window: seconds that an entry is kept, unless there are more than ``limit`` later ones.
        clock: returns seconds.
    """

    memory: Memory = "process"

    def __init__(
        self,
        window: float = DEFAULT_WINDOW,
        clock: Callable[[], float] = time.monotonic,
        *,
        limit: int = MAX_REMEMBERED,
    ) -> None:
        self._window = window
        self._clock = clock
        self._limit = limit
        self._count = 0
        self._lock = threading.Lock()
        # By group and event, the one written last at the end: when, and by consumer why it gave up.
        self._entries: OrderedDict[tuple[str, str], tuple[float, dict[str, str]]] = OrderedDict()

    def __repr__(self) -> str:
        return f"MemoryLedger(window={self._window:g})"

    def known(self, group: str, events: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
        """Return the entries of events; see :class:`balog.consumers.ledger.Ledger`."""
        oldest = self._clock() - self._window
        with self._lock:
            found = {event: self._entries.get((group, event)) for event in events}
            return {event: dict(entry[1]) for event, entry in found.items() if entry is not None and entry[0] >= oldest}

    def record(self, group: str, entries: Sequence[LedgerEntry], *, durable: bool = True) -> None:
        """Remember entries."""
        now = self._clock()
        with self._lock:
            for event, consumer, gave_up in entries:
                _, reasons = self._entries.pop((group, event), (now, {}))
                self._count += consumer not in reasons
                self._entries[group, event] = (now, {**reasons, consumer: gave_up})
            while self._entries:
                written, reasons = next(iter(self._entries.values()))
                if written >= now - self._window and self._count <= self._limit:
                    break
                self._entries.popitem(last=False)
                self._count -= len(reasons)

    def close(self) -> None:
        """Do nothing: the entries stay for later use."""


class NoLedger:
    """Keeps no entries: duplicates are handled twice, and after a failure all consumers of an event are called again.

    The engine then counts deliveries as attempts, also those of events that were only in flight when a process ended.
    """

    memory: Memory = "none"

    def __repr__(self) -> str:
        return "NoLedger()"

    def known(self, group: str, events: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
        """Return no entries."""
        return {}

    def record(self, group: str, entries: Sequence[LedgerEntry], *, durable: bool = True) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


def open_ledger(url: str) -> Ledger:
    """Open a ledger. It creates no file and connects to no server before its first use.

    Args:
        url: ``sqlite:PATH``, for the processes of one machine; ``redis://HOST:PORT/DB`` or ``rediss://…`` (TLS), for
            several machines, with ``?username=…&password.env=NAME&password.file=PATH&ca_file=PATH&timeout=SECONDS``;
            ``memory:``; ``none:``; or the URL of another package's ledger (docs/reference/plugins.md). All
            built-in ones except ``none:`` take ``?window=SECONDS``. Options are percent-encoded.

    Raises:
        ConfigError: an invalid URL, or a secret or file that does not exist. The error never shows a password.
        MissingExtraError: the extra ``redis`` is not installed.
        BalogError: the package that adds the ledger cannot be imported, or opens none.
    """
    scheme, colon, _ = url.partition(":")
    if not colon or scheme not in LEDGERS:
        kind = scheme if colon else "the ledger"
        forms = ", ".join([_FORMS, *(f"{name}:…" for name in LEDGERS.added())])
        raise ConfigError(f"{kind!r:.40} is no kind of ledger; want {forms}")
    ledger: Ledger = LEDGERS.open(scheme, url, ("known", "record", "close"))
    return ledger


def default_ledger(topics_url: str, group: str) -> Ledger:
    """Return the default ledger of a topics backend: a SQLite file.

    For ``local:PATH`` it is a hidden file in that folder, shared by all its users. Otherwise it is in
    ``$XDG_STATE_HOME/balog/ledger/`` (``~/.local/state`` when that is not set), named after a hash of the URL and the
    group, and shared by the processes of this user on this machine.

    Args:
        topics_url: identifies the backend (``Topics.url``).

    Raises:
        ConfigError: this user has no home directory.
    """
    if (topics := local_folder(topics_url)) is not None:
        return SqliteLedger(topics / ".ledger.sqlite")
    if topics_url.partition(":")[0] == "memory":
        return MemoryLedger()
    folder = state_folder("no place for the ledger: set XDG_STATE_HOME or HOME, or name a ledger")
    home = hashlib.sha256(topics_url.encode()).hexdigest()[:16]
    path = folder / "ledger" / f"{home}.{group}.sqlite"
    _check_place(path, "set XDG_STATE_HOME to a folder where it can, or name a ledger")
    return SqliteLedger(path)


def _open_sqlite(url: str) -> Ledger:
    place, options = _split(url, {"window"})
    if not place:
        raise ConfigError("sqlite: names no file; want sqlite:PATH")
    ledger = SqliteLedger(local_path(place, "sqlite"), _window(options))
    _check_place(ledger.path, "name another file")
    return ledger


def _check_place(path: Path, advice: str) -> None:
    """Raise a ConfigError unless the file can be written, before a handler runs and its entry fails."""
    there = next(found for found in (path, *path.absolute().parents) if os.path.exists(found))
    is_right = there.is_dir() != (there == path)
    if not is_right or not os.access(there, os.W_OK if there == path else os.W_OK | os.X_OK):
        raise ConfigError(f"the ledger {path} can't be written, {there} is in the way or not this user's; {advice}")


def _open_memory(url: str) -> Ledger:
    place, options = _split(url, {"window"})
    _want_no_place("memory", place)
    return MemoryLedger(_window(options))


def _open_none(url: str) -> Ledger:
    _want_no_place("none", _split(url, set())[0])
    return NoLedger()


def _open_redis(url: str) -> Ledger:
    from balog.consumers.ledger_redis import RedisLedger
    from balog.consumers.redis_place import REDIS_OPTIONS, open_redis

    _, options = _split(url, {"window", *REDIS_OPTIONS})
    return RedisLedger(open_redis(url, "ledger", options), _window(options))


def _split(url: str, takes: Set[str]) -> tuple[str, dict[str, str]]:
    return split_options(url, "ledger", takes)


def _want_no_place(scheme: str, place: str) -> None:
    if place:
        raise ConfigError(f"{scheme}: takes no place; want {scheme}: alone")


def _window(options: dict[str, str]) -> float:
    return option_seconds("ledger", "window", options.get("window"), DEFAULT_WINDOW)
