"""What a watcher's state says of now: the series that are not well, and the silences."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import msgspec

from balog.common.errors import ConfigError
from balog.watch.series import Series
from balog.watch.state.redis import SCHEMES, open_redis_store
from balog.watch.state.sqlite import SqliteWatchStore
from balog.watch.state.store import StoredState

_WELL = (None, "ok", "learning", "resolved")


def read_state(location: str, group: str) -> StoredState:
    """Return the state of a watcher, which may run meanwhile.

    Args:
        location: the file, or the URL of a Redis server.
        group: the consumer group of the watchers in Redis.

    Raises:
        ConfigError: there is no such file, or the URL is invalid.
        TopicError: the state is damaged or out of reach.
    """
    if location.startswith(SCHEMES):
        with closing(open_redis_store(location, group, 1.0)) as store:
            return store.load()
    if not Path(location).expanduser().is_file():
        raise ConfigError("there is no such file; name the --state of the watcher", location)
    with closing(SqliteWatchStore(location)) as file:
        return file.load()


def active_series(state: StoredState) -> list[Series]:
    """Return the series that are not well, in the order of severity, time and key.

    Their ``shown`` is the state that counts now, also if no alert has reported it, and ``since`` is when it began.
    """
    ranks = ("critical", "error", "warning", "info")
    unwell_series = []
    for data in state.series:
        series = msgspec.msgpack.decode(data, type=Series)
        if series.shown in _WELL and series.life.state not in _WELL:
            series = msgspec.structs.replace(series, shown=series.life.state, since=series.seen)
        if series.shown not in _WELL:
            unwell_series.append(series)
    return sorted(unwell_series, key=lambda item: (ranks.index(item.severity), item.since, item.key))


def active_silences(state: StoredState) -> list[tuple[str, float]]:
    """Return the silences that end after the watcher's clock, each with its end, the next to end first."""
    silences = [(match, until) for match, until in state.silences.items() if until > state.clock]
    return sorted(silences, key=lambda silence: (silence[1], silence[0]))
