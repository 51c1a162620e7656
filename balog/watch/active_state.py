"""What a watcher's state says of now: the series that are not well, and the silences."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import msgspec
from msgspec import Struct

from balog.errors import ConfigError
from balog.watch.series import Series
from balog.watch.store import StoredState
from balog.watch.store_redis import SCHEMES, open_redis_store
from balog.watch.store_sqlite import SqliteWatchStore

_WELL = (None, "ok", "learning", "resolved")


class ActiveSeries(Struct):
    """A series of a monitor that is not well; times are seconds since the epoch.

    Attributes:
        state: ``firing``, ``pending``, ``silenced``, ``acknowledged`` or ``no_data``.
        since: when the state began.
        reason: the reason of the last alert or verdict.
    """

    key: str
    monitor: str
    state: str
    severity: str
    since: float
    reason: str


class ActiveSilence(Struct):
    """A silence of a monitor, a key or a glob, until a time in seconds since the epoch."""

    match: str
    until: float


def read_state(place: str, group: str) -> StoredState:
    """Return the state of a watcher, which may run meanwhile.

    Args:
        place: the file, or the URL of a Redis server.
        group: the consumer group of the watchers in Redis.

    Raises:
        ConfigError: there is no such file, or the URL is invalid.
        TopicError: the state is damaged or out of reach.
    """
    if place.startswith(SCHEMES):
        with closing(open_redis_store(place, group, 1.0)) as store:
            return store.load()
    if not Path(place).expanduser().is_file():
        raise ConfigError("there is no such file; name the --state of the watcher", place)
    with closing(SqliteWatchStore(place)) as file:
        return file.load()


def active_series(state: StoredState) -> list[ActiveSeries]:
    """Return the series that are not well, in the order of severity, time and key."""
    ranks = ("critical", "error", "warning", "info")
    found = []
    for data in state.series:
        one = msgspec.msgpack.decode(data, type=Series)
        shown = one.life.state if one.shown in _WELL else one.shown
        if shown is not None and shown not in _WELL:
            since = one.since if one.shown == shown else one.seen
            found.append(ActiveSeries(one.key, one.monitor, shown, one.severity, since, one.reason))
    return sorted(found, key=lambda one: (ranks.index(one.severity), one.since, one.key))


def active_silences(state: StoredState) -> list[ActiveSilence]:
    """Return the silences that end after the watcher's clock, the next to end first."""
    found = [ActiveSilence(match, until) for match, until in state.silences.items() if until > state.clock]
    return sorted(found, key=lambda one: (one.until, one.match))
