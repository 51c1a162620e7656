"""The state of several watchers in Redis. One of them leads and writes; the others wait to take over.

The leader holds a lease that expires. Each claim has a token of its own, and every write checks in its transaction that
the token is still the last claim's. So a leader that was paused while another took over changes nothing when it wakes.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import msgspec

from balog.common.errors import TopicError
from balog.consumers.ledgers.redis_place import REDIS_OPTIONS, RedisPlace, split_options
from balog.watch.state.store import HANDLED_SECONDS, MAX_HANDLED, StoredState, decode_facts, encode_facts

SCHEMES = ("redis:", "rediss:")

_USER = "state"
_SCAN = 1000
_ATTEMPTS = 3

_CLAIM = """
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
redis.call('SET', KEYS[2], ARGV[1])
return 1
"""
_RENEW = """
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
"""
_RELEASE = "if redis.call('GET', KEYS[2]) == ARGV[1] then redis.call('DEL', KEYS[1]) end"


class LeadershipLost(TopicError):
    """Another instance has taken over, or Redis has lost the state. This instance changed nothing."""

    retryable = False


class RedisWatchStore:
    """The state under the keys ``balog:watch:{GROUP}:…`` of a Redis server, with the methods of ``SqliteWatchStore``.

    The server's settings decide how durable a commit is, as for the ledger in Redis. Redis must not evict.

    Args:
        database: the database.
        group: instances with the same one share the state.
        lease: seconds after which another instance may take over from one that does not renew.
    """

    def __init__(self, database: RedisPlace, group: str, lease: float) -> None:
        self.lease = lease
        self._place = database
        self._client: Any = database.client  # its types leave open what comes back: here always bytes
        self._keys = f"balog:watch:{{{quote(group, safe='')}}}"  # the braces keep the keys on one node of a cluster
        self._token = ""
        self._last = 0
        self._pruned = 0.0

    def claim(self) -> bool:
        """Become the leader if there is none. Return whether this is the leader now.

        Raises:
            TopicError: Redis is out of reach.
        """
        token = uuid.uuid4().hex
        if not self._call(_CLAIM, token):
            return False
        self._token = token
        return True

    def renew(self) -> bool:
        """Extend the lease; return False if another instance has taken over since, or Redis has lost the state.

        Raises:
            TopicError: Redis is out of reach.
        """
        return bool(self._call(_RENEW, self._token))

    def release(self) -> None:
        """Release the lease, so that another instance takes over now.

        Raises:
            TopicError: Redis is out of reach.
        """
        self._call(_RELEASE, self._token)

    def load(self) -> StoredState:
        """Return the state; clock 0 and nothing else before the first commit."""
        with self._errors():
            stored: dict[bytes, bytes] = self._client.hgetall(self._key("facts"))
            series = [data for _, data in self._client.hscan_iter(self._key("series"), count=_SCAN)]
        facts = {name.decode(): data for name, data in stored.items()}
        self._last = int(facts.get("last", 0))
        return StoredState(*decode_facts(facts), series)

    def handled(self, ids: Sequence[str]) -> set[str]:
        """Return the ids that are known to be handled."""
        if not ids:
            return set()
        with self._errors():
            scores: Sequence[float | None] = self._client.zmscore(self._key("handled"), list(ids))
        return {id for id, score in zip(ids, scores) if score is not None}

    def commit(
        self,
        clock: float,
        silences: Mapping[str, float],
        series: Mapping[str, bytes | None],
        handled: Iterable[str],
        alerts: Sequence[bytes],
    ) -> None:
        """Write changes in one transaction, unless another instance has taken over.

        Raises:
            LeadershipLost: it has.
        """
        now = time.time()
        last = self._last + len(alerts)
        facts = {**encode_facts(clock, silences), "last": str(last).encode()}
        commands: list[tuple[Any, ...]] = [("HSET", self._key("facts"), *_flat(facts.items()))]
        kept = [(key, data) for key, data in series.items() if data is not None]
        removed = [key for key, data in series.items() if data is None]
        for some in _parts(kept):
            commands.append(("HSET", self._key("series"), *_flat(some)))
        for some in _parts(removed):
            commands.append(("HDEL", self._key("series"), *some))
        for some in _parts(list(handled)):
            commands.append(("ZADD", self._key("handled"), *_flat((now, id) for id in some)))
        numbered = [(number, alert) for number, alert in enumerate(alerts, self._last + 1)]
        for some in _parts(numbered):
            commands.append(("ZADD", self._key("unsent"), *_flat(some)))
        if now - self._pruned >= HANDLED_SECONDS / 1440:
            self._pruned = now
            commands.append(("ZREMRANGEBYSCORE", self._key("handled"), "-inf", now - HANDLED_SECONDS))
            commands.append(("ZREMRANGEBYRANK", self._key("handled"), 0, -MAX_HANDLED - 1))
        self._write(commands)
        self._last = last

    def unsent(self, after: int = 0) -> list[tuple[int, bytes]]:
        """Return the alerts that are not yet sent, with their numbers, oldest first."""
        with self._errors():
            rows = self._client.zrangebyscore(self._key("unsent"), f"({after}", "+inf", withscores=True)
        return [(int(number), event) for event, number in rows]

    def sent(self, reached: Mapping[str, int]) -> None:
        """Keep the number of the last alert that each target has, and forget the alerts that all have."""
        self._write([
            ("ZREMRANGEBYSCORE", self._key("unsent"), "-inf", min(reached.values())),
            ("HSET", self._key("facts"), "reached", msgspec.msgpack.encode(reached)),
        ])  # fmt: skip

    def close(self) -> None:
        """Close the connections."""
        self._place.close()

    def _write(self, commands: Sequence[tuple[Any, ...]]) -> None:
        """Run commands in a transaction that fails if another claim succeeds meanwhile.

        Each command writes the same when it is run twice, so an answer that was lost does no harm.
        """
        from redis import WatchError

        owner = self._key("owner")
        with self._errors():
            for attempt in range(1, _ATTEMPTS + 1):
                with self._client.pipeline(transaction=True) as pipeline:
                    pipeline.watch(owner)
                    if pipeline.get(owner) != self._token.encode():
                        raise LeadershipLost("another instance leads, or Redis has lost the state")
                    pipeline.multi()
                    for command in commands:
                        pipeline.execute_command(*command)
                    try:
                        pipeline.execute()
                    except WatchError:  # the owner has changed, or the connection broke
                        if attempt == _ATTEMPTS:
                            raise
                    else:
                        return

    def _call(self, script: str, token: str) -> Any:
        with self._errors():
            keys = (self._key("lease"), self._key("owner"))
            return self._client.eval(script, len(keys), *keys, token, round(self.lease * 1000))

    def _key(self, name: str) -> str:
        return f"{self._keys}:{name}"

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except self._place.errors as error:
            self._place.fail(error)


def open_redis_store(url: str, group: str, lease: float) -> RedisWatchStore:
    """Return the state at ``redis://HOST:PORT/DB`` or ``rediss://…`` (TLS), with the options of a ledger in Redis.

    Raises:
        ConfigError: an invalid URL, or a secret or file that does not exist. The error never shows a password.
        MissingExtraError: the extra ``redis`` is not installed.
    """
    _, options = split_options(url, _USER, REDIS_OPTIONS)
    return RedisWatchStore(RedisPlace(url, _USER, options), group, lease)


def _flat(pairs: Iterable[tuple[Any, Any]]) -> list[Any]:
    return [part for pair in pairs for part in pair]


def _parts(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(items), _SCAN):
        yield items[start : start + _SCAN]
