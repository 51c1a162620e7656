"""Sampling and rate limits by channel, with a count of what was held back."""

from __future__ import annotations

import fnmatch
import os
import random
import re
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timezone
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from balog.cardinality import REST
from balog.errors import ConfigError, split_refusal

__all__ = ["Rule", "Volume"]

Level = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
_LEVELS: tuple[Level, ...] = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


class Rule(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the channels of one pattern may write.

    ``channel`` is a pattern as in a shell (``tap_stripe.*``; a ``*`` goes over dots). The rule is for events up to
    ``level``; errors pass unless it says otherwise. ``sample`` is the share that passes, by chance. ``per_second`` is
    how many events of a channel may follow on average, ``burst`` how many at once (as many as in a second when not
    said).
    """

    channel: Annotated[str, Meta(min_length=1, max_length=1000)]
    level: Level = "WARNING"
    sample: Annotated[float, Meta(gt=0, le=1)] = 1.0
    per_second: Annotated[float, Meta(gt=0, le=1e9)] | None = None
    burst: Annotated[float, Meta(ge=1, le=1e9)] | None = None

    def __post_init__(self) -> None:
        if self.sample == 1 and self.per_second is None:
            raise ValueError("holds nothing back: give sample below 1, or per_second")
        if self.burst is not None and self.per_second is None:
            raise ValueError("burst needs per_second")


class _Bucket:
    __slots__ = ("burst", "filled_at", "per_second", "tokens")

    def __init__(self, per_second: float, burst: float, now: float) -> None:
        self.per_second = per_second
        self.burst = burst
        self.tokens = burst
        self.filled_at = now

    def take(self, now: float) -> bool:
        if now > self.filled_at:  # a thread may come late with its time
            tokens = self.tokens + (now - self.filled_at) * self.per_second
            self.tokens = tokens if tokens < self.burst else self.burst
            self.filled_at = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


class _Lane:
    """What holds for one channel at one level. ``bucket`` is shared by the channel's levels."""

    __slots__ = ("bucket", "channel", "sample", "used")

    def __init__(self, channel: str, sample: float, bucket: _Bucket | None) -> None:
        self.channel = channel
        self.sample = sample
        self.bucket = bucket
        self.used = True


class Volume:
    """Says which events may pass, and counts those that may not. Threads share it; a fork's child counts anew.

    Args:
        rules: the first one that fits an event's channel and level counts; an event that none fits passes.
        interval: seconds between two reports of what was held back.
        max_channels: how many channels are told apart at a time; further ones share their limit and their counts. A
            channel that was silent for an interval makes room.
        clock: seconds that only grow.
        wall: seconds since the epoch, for reports.
        seed: makes the sampling repeatable.

    Raises:
        ConfigError: a rule or interval that makes no sense; ``path`` says which.
    """

    def __init__(
        self,
        rules: Iterable[Rule | Mapping[str, Any]],
        interval: float = 60.0,
        *,
        max_channels: int = 1000,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        seed: int | None = None,
    ) -> None:
        if not 0 < interval < float("inf"):
            raise ConfigError(f"{interval!r} is no number of seconds above 0", path="$.interval")
        read = [rule if isinstance(rule, Rule) else _read(rule, number) for number, rule in enumerate(rules)]
        self._rules = [(re.compile(fnmatch.translate(rule.channel)), _LEVELS.index(rule.level), rule) for rule in read]
        self._interval = interval
        self._max_channels = max_channels
        self._clock = clock
        self._wall = wall
        self._seed = seed
        self._random = random.Random(seed)
        self._start()
        _forked.add(self)

    def _start(self) -> None:
        self._lock = threading.RLock()  # a signal handler may log while its thread is in here
        self._lanes: dict[str, dict[str, _Lane]] = {level: {} for level in _LEVELS}
        self._buckets: dict[tuple[int, str], _Bucket] = {}
        self._channels: set[str] = set()
        self._held: dict[tuple[str, str], list[int]] = {}
        self._since = self._wall()
        self._due_at = self._clock() + self._interval

    def _after_fork(self) -> None:
        if self._seed is None:
            self._random = random.Random()
        self._start()

    def admit(self, channel: str, level: str) -> bool:
        """Tell whether an event may pass, and count it when it may not."""
        lane = self._lanes[level].get(channel) or self._lane(channel, level)
        lane.used = True
        if lane.sample < 1 and self._random.random() >= lane.sample:
            with self._lock:
                self._held.setdefault((lane.channel, level), [0, 0])[0] += 1
            return False
        if lane.bucket is not None:
            now = self._clock()
            with self._lock:
                if not lane.bucket.take(now):
                    self._held.setdefault((lane.channel, level), [0, 0])[1] += 1
                    return False
        return True

    def rate(self, channel: str, level: str) -> float:
        """Give the share of a channel's events that sampling lets pass, above 0 to 1.

        An event of a rate below 1 stands for ``1 / rate`` events; a logger writes it as ``sample_rate`` into the
        context of those that pass.
        """
        lane = self._lanes[level].get(channel) or self._lane(channel, level)
        return lane.sample

    def due(self) -> bool:
        """Tell whether the interval since the last report has passed."""
        return self._clock() >= self._due_at

    def take(self) -> dict[str, Any] | None:
        """Give the report of what was held back since the last one as a ``held_back`` payload; None for nothing."""
        with self._lock:
            since, until = self._since, self._wall()
            self._since = until
            self._due_at = self._clock() + self._interval
            held, self._held = self._held, {}
            self._forget_silent()
        if not held:
            return None
        return {
            "cls_type": "held_back",
            "version": "1.0.0",
            "since": _timestamp(since),
            "until": _timestamp(until),
            "sampled": sum(sampled for sampled, _ in held.values()),
            "limited": sum(limited for _, limited in held.values()),
            "channels": [
                {"channel": channel, "level": level, "sampled": sampled, "limited": limited}
                for (channel, level), (sampled, limited) in held.items()
            ],
        }

    def _lane(self, channel: str, level: str) -> _Lane:
        with self._lock:
            lane = self._lanes[level].get(channel)
            if lane is not None:  # another thread was faster
                return lane
            number, rule = self._rule(channel, level)
            name = channel
            if channel not in self._channels:
                if len(self._channels) < self._max_channels:
                    self._channels.add(channel)
                elif rule is None:
                    return _FREE
                else:
                    name = f"{REST}{number}"  # one for each rule
                    lane = self._lanes[level].get(name)
                    if lane is not None:
                        return lane
            if rule is None:
                lane = _Lane(channel, 1.0, None)
            else:
                bucket = self._bucket(rule, number, name)
                lane = _Lane(channel if name is channel else REST, rule.sample, bucket)
            self._lanes[level][name] = lane
            return lane

    def _rule(self, channel: str, level: str) -> tuple[int, Rule | None]:
        place = _LEVELS.index(level)
        for number, (pattern, highest, rule) in enumerate(self._rules):
            if place <= highest and pattern.match(channel):
                return number, rule
        return -1, None

    def _bucket(self, rule: Rule, number: int, name: str) -> _Bucket | None:
        if rule.per_second is None:
            return None
        bucket = self._buckets.get((number, name))
        if bucket is None:
            burst = rule.burst if rule.burst is not None else max(1.0, rule.per_second)
            bucket = self._buckets[number, name] = _Bucket(rule.per_second, burst, self._clock())
        return bucket

    def _forget_silent(self) -> None:
        """Make room: forget channels that logged nothing since the last report."""
        used = {name for lanes in self._lanes.values() for name, lane in lanes.items() if lane.used}
        for lanes in self._lanes.values():
            for name in [name for name in lanes if name not in used]:
                del lanes[name]
            for lane in lanes.values():
                lane.used = False
        self._channels &= used
        self._buckets = {key: bucket for key, bucket in self._buckets.items() if key[1] in used}


_FREE = _Lane(REST, 1.0, None)


def _read(rule: Any, number: int) -> Rule:
    try:
        return msgspec.convert(rule, Rule)
    except msgspec.ValidationError as error:
        reason, where = split_refusal(error)
        raise ConfigError(reason, path=f"$[{number}]{where[1:]}") from None


def _timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="microseconds").replace("+00:00", "Z")


_forked: weakref.WeakSet[Volume] = weakref.WeakSet()


def _forget_parent() -> None:
    for one in list(_forked):
        one._after_fork()


os.register_at_fork(after_in_child=_forget_parent)
