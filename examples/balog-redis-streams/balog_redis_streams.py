"""Topics as Redis Streams, for ``redis://HOST:PORT/DATABASE``.

A topic is a stream, and a group of balog is a consumer group of Redis, which counts deliveries and lag. Redis has no
leases, delayed retries or receipts of deliveries: sorted sets and a hash keep them beside the stream. Scripts
change them together with the group, so a crash leaves no half of it. Redriven messages are in a stream of their group.
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Literal

import msgspec
import redis

from balog.common.errors import ConfigError, TopicError
from balog.common.secrets import Secret
from balog.topics import DeadLetter, Generation, GivenUp, GroupState, Message, Received, Topic, Topics, TopicState
from balog.topics.base import DEFAULT_LEASE, check_name
from balog.topics.url import split_url

_FORM = "redis://HOST:PORT/DATABASE"
_MAX_RECEIVED = 500
_PAGE = 100
_POLL = 0.05  # seconds between two looks for a message

_NOW = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
"""

# KEYS: stream, leases, delayed, receipts. ARGV: group, limit, lease in ms, receipt.
_RECEIVE = (
    _NOW
    + """
if redis.call('EXISTS', KEYS[1]) == 0 then return {} end
redis.pcall('XGROUP', 'CREATE', KEYS[1], ARGV[1], '0', 'ENTRIESREAD', 0)
local limit, due = tonumber(ARGV[2]), {}
for _, key in ipairs({KEYS[2], KEYS[3]}) do
    for _, id in ipairs(redis.call('ZRANGEBYSCORE', key, '-inf', now, 'LIMIT', 0, limit)) do due[#due + 1] = id end
end
local function order(id)
    local ms, number = string.match(id, '(%d+)-(%d+)')
    return tonumber(ms), tonumber(number)
end
table.sort(due, function(a, b)
    local ms, number = order(a)
    local other_ms, other_number = order(b)
    if ms == other_ms then return number < other_number end
    return ms < other_ms
end)
local entries = {}
if #due > 0 then
    local some = {unpack(due, 1, math.min(#due, limit))}
    redis.call('ZREM', KEYS[2], unpack(some))
    redis.call('ZREM', KEYS[3], unpack(some))
    entries = redis.call('XCLAIM', KEYS[1], ARGV[1], 'balog', 0, unpack(some))
end
if #entries < limit then
    local new = redis.call('XREADGROUP', 'GROUP', ARGV[1], 'balog', 'COUNT', limit - #entries, 'STREAMS', KEYS[1], '>')
    for _, entry in ipairs(new and new[1][2] or {}) do entries[#entries + 1] = entry end
end
for _, entry in ipairs(entries) do
    redis.call('ZADD', KEYS[2], now + ARGV[3], entry[1])
    redis.call('HSET', KEYS[4], entry[1], ARGV[4])
    entry[3] = redis.call('XPENDING', KEYS[1], ARGV[1], entry[1], entry[1], 1)[1][4]
end
return entries
"""
)

# KEYS: as above, dead letters, redriven. ARGV: group, action, id, receipt, and ms, whether attempted, or fields.
_SETTLE = (
    _NOW
    + """
local group, action, id = ARGV[1], ARGV[2], ARGV[3]
if redis.call('HGET', KEYS[4], id) ~= ARGV[4] then return 0 end
if action == 'extend' then
    redis.call('ZADD', KEYS[2], now + ARGV[5], id)
    return 1
end
redis.call('HDEL', KEYS[4], id)
redis.call('ZREM', KEYS[2], id)
if action == 'release' then
    redis.call('ZADD', KEYS[3], now + ARGV[5], id)
    if ARGV[6] == '0' then
        local count = redis.call('XPENDING', KEYS[1], group, id, id, 1)[1][4]
        redis.call('XCLAIM', KEYS[1], group, 'balog', 0, id, 'RETRYCOUNT', count - 1, 'JUSTID')
    end
    return 1
end
if action == 'dead-letter' then redis.call('XADD', KEYS[5], '*', unpack(ARGV, 5)) end
redis.call('XACK', KEYS[1], group, id)
if KEYS[1] == KEYS[6] then redis.call('XDEL', KEYS[1], id) end
return 1
"""
)

# KEYS: dead letters, redriven. ARGV: id of the dead letter, fields of the message.
_REDRIVE = """
if redis.call('XDEL', KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call('XADD', KEYS[2], '*', unpack(ARGV, 2))
return 1
"""


def open_redis(url: str) -> RedisTopics:
    """Open the topics of a database. Options: ``password.env=NAME``, ``maxlen=N`` (messages kept of each topic).

    Raises:
        ConfigError: the URL is not of that form, or the password is missing.
    """
    place, options = split_url(url, _FORM)
    host, _, database = place.removeprefix("//").partition("/")
    name, _, port = host.rpartition(":")
    password, maxlen = options.pop("password.env", None), options.pop("maxlen", None)
    if options or not (name and port.isdecimal() and database.isdecimal() and (maxlen or "1").isdecimal()):
        raise ConfigError(f"redis: expected {_FORM}, with the options password.env=NAME and maxlen=N")
    client = redis.Redis(
        host=name,
        port=int(port),
        db=int(database),
        password=Secret(env=password).reveal("password.env") if password else None,
        socket_timeout=30.0,
    )
    return RedisTopics(client, f"redis:{place}", int(maxlen) if maxlen else None)


class RedisTopics(Topics):
    """The topics of a Redis database; their names are in the set ``balog:topics``."""

    def __init__(self, client: redis.Redis, url: str, maxlen: int | None) -> None:
        self.url = url
        self._client = client
        self._maxlen = maxlen

    def topic(self, name: str) -> RedisTopic:
        """Return the topic of that name."""
        return RedisTopic(check_name("topic", name), self._client, self._maxlen)

    def names(self) -> list[str]:
        """List the topics that exist, sorted."""
        with _errors(self.url):
            return sorted(name.decode() for name in self._client.smembers("balog:topics"))

    def close(self) -> None:
        """Close the connections; a later use opens them again."""
        self._client.close()


class RedisTopic(Topic):
    """A stream ``balog:NAME``. It keeps all messages, or the newest ``maxlen``, and does not recognize known ids."""

    keeps_ids: ClassVar[bool] = False

    def __init__(self, name: str, client: redis.Redis, maxlen: int | None) -> None:
        self.name = name
        self._client = client
        self._maxlen = maxlen
        self._stream = f"balog:{name}"
        self._receive = client.register_script(_RECEIVE)
        self._settle = client.register_script(_SETTLE)
        self._redrive = client.register_script(_REDRIVE)

    def exists(self) -> bool:
        """Return whether anything was published."""
        with self._errors():
            return bool(self._client.exists(self._stream))

    def close(self) -> None:
        """Do nothing: the connections belong to the backend."""

    def publish(self, messages: Iterable[Message]) -> int:
        """Add messages in one transaction, and return their number."""
        with self._errors(), self._client.pipeline(transaction=True) as pipeline:
            for message in messages:
                key = {} if message.key is None else {"key": message.key}
                entry = {"id": message.id, "body": bytes(message.body), **key}
                pipeline.xadd(self._stream, entry, maxlen=self._maxlen, approximate=True)
            if not (count := len(pipeline)):
                return 0
            pipeline.sadd("balog:topics", self.name)
            pipeline.execute()
            return count

    # -- receiving and settling

    def receive(self, group: str, limit: int = 100, wait: float = 0.0, lease: float = DEFAULT_LEASE) -> list[Received]:
        """Receive redriven messages, then expired and released ones, then new ones. Poll while there are none."""
        check_name("group", group)
        deadline = time.monotonic() + wait
        limit = min(limit, _MAX_RECEIVED)
        while True:
            received: list[Received] = []
            with self._errors():
                replay = int(self._client.get(f"{self._stream}:{group}:replays") or 0)
                for kind, stream in enumerate(self._streams(group)):
                    receipt = secrets.token_hex(8)
                    given = [group, limit - len(received), math.ceil(lease * 1000), receipt]
                    for id, fields, attempts in self._receive(_keys(stream, group), given) if given[1] else ():
                        place = f"{kind}/{id.decode()}/{receipt}"
                        received.append(_received(id, _pairs(fields), place, attempts, replay))
            if received or time.monotonic() >= deadline:
                return received
            time.sleep(_POLL)

    def ack(self, group: str, received: Sequence[Received]) -> int:
        """Ack messages."""
        return self._settle_each(group, "ack", [(one, ()) for one in received])

    def release(self, group: str, received: Sequence[Received], delay: float = 0.0, *, attempted: bool = True) -> int:
        """Release messages; the delayed ones are in a sorted set until then."""
        return self._settle_each(
            group, "release", [(one, (math.ceil(delay * 1000), int(attempted))) for one in received]
        )

    def extend(self, group: str, received: Sequence[Received], lease: float = DEFAULT_LEASE) -> int:
        """Extend leases from now."""
        return self._settle_each(group, "extend", [(one, (math.ceil(lease * 1000),)) for one in received])

    def dead_letter_each(self, group: str, given_up: Sequence[GivenUp]) -> int:
        """Move messages to the stream of the group's dead letters."""
        return self._settle_each(group, "dead-letter", [(one.received, _dead_fields(one)) for one in given_up])

    def _settle_each(self, group: str, action: str, what: Sequence[tuple[Received, tuple[Any, ...]]]) -> int:
        with self._errors(), self._client.pipeline(transaction=False) as pipeline:
            for message, values in what:
                streams = self._streams(group)
                kind, id, receipt = message.receipt.split("/")
                keys = [*_keys(streams[int(kind)], group), f"{self._stream}:{group}:dead", streams[0]]
                self._settle(keys, [group, action, id, receipt, *values], client=pipeline)
            return sum(pipeline.execute())

    # -- dead letters

    def dead_letters(self, group: str, limit: int = 100) -> list[DeadLetter]:
        """Return a group's dead letters, oldest first."""
        with self._errors():
            return [_dead_letter(group, *entry) for entry in self._dead(group, "-", limit)]

    def redrive(self, group: str, decide: Callable[[DeadLetter], bytes | None], limit: int | None = None) -> int:
        """Move dead letters to the group's stream of redriven messages, each by one script."""
        check_name("group", group)
        changed, seen, last = 0, 0, "-"
        with self._errors():
            self._check_exists()
            while entries := self._dead(group, last, _PAGE if limit is None else min(limit - seen, _PAGE)):
                for id, fields in entries:
                    seen, last = seen + 1, f"({id.decode()}"
                    body = decide(_dead_letter(group, id, fields))
                    if body is None:
                        continue
                    number = self._client.incr(f"{self._stream}:{group}:redrives")
                    kept = {name: fields[name] for name in (b"id", b"key", b"published") if name in fields}
                    entry = {**kept, b"body": bytes(body), b"redrive": number}
                    keys = [f"{self._stream}:{group}:dead", self._streams(group)[0]]
                    changed += self._redrive(keys, [id, *(part for pair in entry.items() for part in pair)])
        return changed

    def _dead(self, group: str, after: str, limit: int) -> list[tuple[bytes, dict[bytes, bytes]]]:
        return self._client.xrange(f"{self._stream}:{group}:dead", after, count=limit) if limit > 0 else []

    # -- looking and moving

    def peek(self, limit: int = 10, *, newest: bool = False) -> list[Received]:
        """Return messages in the order of their publishing."""
        with self._errors():
            self._check_exists()
            if newest:
                return [_received(*entry) for entry in reversed(self._client.xrevrange(self._stream, count=limit))]
            return [_received(*entry) for entry in self._client.xrange(self._stream, count=limit)]

    def seek(self, group: str, to: float | Literal["earliest", "latest"]) -> GroupState:
        """Create the group anew at another message. Redriven messages stay, without attempts."""
        check_name("group", group)
        with self._errors():
            self._check_exists()
            if held := self.group_state(group).in_flight:
                raise TopicError(
                    f"topic {self.name}: group {group} holds {held} messages; stop its consumers,"
                    " or wait until their leases have expired"
                )
            stream = self._client.xinfo_stream(self._stream)
            last = {"earliest": "0-0", "latest": stream["last-generated-id"].decode()}.get(str(to))
            if last is None:
                last = f"{math.ceil(float(to) * 1000) - 1}-{2**64 - 1}"
            after = sum(1 for _ in self._entries(f"({last}"))
            with self._client.pipeline(transaction=True) as pipeline:
                redriven, main = self._streams(group)
                for name, start, read in ((redriven, "0", 0), (main, last, stream["entries-added"] - after)):
                    if name == main or self._client.exists(redriven):
                        pipeline.xgroup_destroy(name, group)
                        pipeline.xgroup_create(name, group, start, entries_read=read)
                    pipeline.delete(*_keys(name, group)[1:])
                pipeline.incr(f"{self._stream}:{group}:replays")
                pipeline.execute()
            return self.group_state(group)

    def group_state(self, group: str) -> GroupState:
        """Return the state of a group, as counted by Redis."""
        with self._errors():
            self._check_exists()
            now, micros = self._client.time()
            redriven, main = self._streams(group)
            in_flight = sum(
                self._client.zcount(_keys(stream, group)[1], f"({now * 1000 + micros // 1000}", "+inf")
                for stream in (redriven, main)
            )
            groups = {one["name"].decode(): one for one in self._client.xinfo_groups(main)}
            found = groups.get(group, {"lag": self._client.xlen(main), "pending": 0, "entries-read": 0})
            unacked = found["pending"] + self._client.xlen(redriven)
            dead = self._client.xlen(f"{self._stream}:{group}:dead")
            return GroupState(
                group, found["entries-read"] or 0, found["lag"] or 0, in_flight, unacked - in_flight, dead
            )

    def describe(self) -> TopicState:
        """Return the state of the topic; this reads all messages."""
        with self._errors():
            self._check_exists()
            messages = size = 0
            oldest = None
            for id, fields in self._entries("-"):
                messages, size = messages + 1, size + len(fields[b"body"])
                oldest = oldest if oldest is not None else _published(id, fields)
            names = sorted(one["name"].decode() for one in self._client.xinfo_groups(self._stream))
            return TopicState(self.name, messages, size, oldest, [self.group_state(name) for name in names])

    def _entries(self, after: str) -> Iterator[tuple[bytes, dict[bytes, bytes]]]:
        while entries := self._client.xrange(self._stream, after, count=_PAGE):
            yield from entries
            after = f"({entries[-1][0].decode()}"

    def _check_exists(self) -> None:
        if not self._client.exists(self._stream):
            raise TopicError(f"topic {self.name} does not exist; the first message that is published creates it")

    def _streams(self, group: str) -> tuple[str, str]:
        """Return the stream of a group's redriven messages, and that of all messages."""
        return f"{self._stream}:{group}:redriven", self._stream

    def _errors(self) -> Any:
        return _errors(f"topic {self.name}")


@contextmanager
def _errors(where: str) -> Iterator[None]:
    try:
        yield
    except redis.RedisError as error:
        is_away = isinstance(error, redis.ConnectionError | redis.TimeoutError)
        retryable = is_away and not isinstance(error, redis.AuthenticationError)
        raise TopicError(f"{where}: redis: {' '.join(str(error).split())[:300]}", retryable=retryable) from None


def _keys(stream: str, group: str) -> list[str]:
    return [stream, *(f"{stream}:{group}:{kind}" for kind in ("leases", "delayed", "receipts"))]


def _pairs(fields: Sequence[bytes]) -> dict[bytes, bytes]:
    return dict(zip(fields[::2], fields[1::2], strict=True))


def _published(id: bytes, fields: dict[bytes, bytes]) -> float:
    return float(fields[b"published"]) if b"published" in fields else int(id.partition(b"-")[0]) / 1000


def _received(id: bytes, fields: dict[bytes, bytes], receipt: str = "", attempts: int = 0, replay: int = 0) -> Received:
    key = fields.get(b"key")
    generation = Generation(replay, int(fields.get(b"redrive", 0)))
    published = _published(id, fields)
    return Received(
        fields[b"id"].decode(), fields[b"body"], receipt, attempts, published, key and key.decode(), generation
    )


def _dead_fields(given_up: GivenUp) -> tuple[Any, ...]:
    message = given_up.received
    key = () if message.key is None else ("key", message.key)
    failure = msgspec.json.encode((_text(given_up.reason), given_up.consumers, _text(given_up.traceback)))
    fields = ("id", message.id, "body", message.body, "published", message.published, "attempts", message.attempts)
    return (*fields, "failure", failure, *key)


def _dead_letter(group: str, id: bytes, fields: dict[bytes, bytes]) -> DeadLetter:
    reason, consumers, traceback = msgspec.json.decode(fields[b"failure"], type=tuple[str, tuple[str, ...], str])
    died, attempts = int(id.partition(b"-")[0]) / 1000, int(fields[b"attempts"])
    return DeadLetter(
        fields[b"id"].decode(),
        fields[b"body"],
        group,
        reason,
        attempts,
        died,
        consumers,
        traceback,
        id.decode(),
    )


def _text(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
