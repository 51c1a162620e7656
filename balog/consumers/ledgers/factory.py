"""Ledgers by URL, and the default ledger of an engine."""

from __future__ import annotations

import hashlib
import math
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from balog.common.errors import ConfigError
from balog.common.local_path import local_path, state_folder
from balog.common.plugins import PluginRegistry
from balog.consumers.ledgers.ledger import DEFAULT_WINDOW, Ledger, LedgerEntry
from balog.consumers.ledgers.redis_place import split_options
from balog.consumers.ledgers.sqlite import SqliteLedger
from balog.topics import local_folder

__all__ = ["LEDGERS", "MemoryLedger", "NoLedger", "SqliteLedger", "default_ledger", "open_ledger"]

_LONGEST_WINDOW = 10 * 365 * 86400.0

_FORMS = "sqlite:PATH, redis://HOST:PORT/DB?password.env=NAME or none:"

LEDGERS = PluginRegistry(
    "balog.ledgers",
    {
        "sqlite": "balog.consumers.ledgers.factory:_open_sqlite",
        "redis": "balog.consumers.ledgers.factory:_open_redis",
        "rediss": "balog.consumers.ledgers.factory:_open_redis",
        "none": "balog.consumers.ledgers.factory:_open_none",
    },
)
"""URL scheme -> a function that opens the ledger of a URL."""


class MemoryLedger:
    """Entries in this process's memory, for topics in memory: both end with the process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: dict[tuple[str, str], dict[str, str]] = {}

    def known(self, group: str, events: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
        """Return the entries of events; see :class:`balog.consumers.ledgers.ledger.Ledger`."""
        with self._lock:
            return {event: dict(entries) for event in events if (entries := self._entries.get((group, event)))}

    def record(self, group: str, entries: Sequence[LedgerEntry], *, durable: bool = True) -> None:
        """Remember entries."""
        with self._lock:
            for event, consumer, gave_up in entries:
                self._entries.setdefault((group, event), {})[consumer] = gave_up

    def close(self) -> None:
        """Do nothing: the entries stay for later use."""


class NoLedger:
    """Keeps no entries: duplicates are handled twice, and after a failure all consumers of an event are called again.

    The engine then counts deliveries as attempts, also those of events that were only in flight when a process ended.
    """

    remembers = False

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
            several machines, with ``?username=…&password.env=NAME&password.file=PATH``;
            ``none:``; or the URL of another package's ledger (docs/reference/plugins.md). All
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
        raise ConfigError(f"{kind!r:.40} is no kind of ledger; expected {forms}")
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
    path, options = split_options(url, "ledger", {"window"})
    if not path:
        raise ConfigError("sqlite: names no file; expected sqlite:PATH")
    ledger = SqliteLedger(local_path(path, "sqlite"), _window(options))
    _check_place(ledger.path, "name another file")
    return ledger


def _check_place(path: Path, advice: str) -> None:
    """Raise a ConfigError unless the file can be written, before a handler runs and its entry fails."""
    there = next(candidate for candidate in (path, *path.absolute().parents) if os.path.exists(candidate))
    is_right = there.is_dir() != (there == path)
    if not is_right or not os.access(there, os.W_OK if there == path else os.W_OK | os.X_OK):
        raise ConfigError(f"the ledger {path} can't be written, {there} is in the way or not this user's; {advice}")


def _open_none(url: str) -> Ledger:
    if split_options(url, "ledger", set())[0]:
        raise ConfigError("none: takes no place; write none: alone")
    return NoLedger()


def _open_redis(url: str) -> Ledger:
    from balog.consumers.ledgers.redis import RedisLedger
    from balog.consumers.ledgers.redis_place import REDIS_OPTIONS, RedisPlace

    _, options = split_options(url, "ledger", {"window", *REDIS_OPTIONS})
    return RedisLedger(RedisPlace(url, "ledger", options), _window(options))


def _window(options: dict[str, str]) -> float:
    text = options.get("window")
    try:
        seconds = DEFAULT_WINDOW if text is None else float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= _LONGEST_WINDOW:
        raise ConfigError(f"a ledger's window {text!r:.40} can't be; expected seconds, more than 0")
    return seconds
