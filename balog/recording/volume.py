"""Sampling and rate limits by channel, with counts of held-back events."""

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

Level = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
_LEVELS: tuple[Level, ...] = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


class VolumeRule(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Sampling and rate limit of the channels that match a pattern."""

    channel: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=1000,
            description="A shell pattern such as tap_stripe.*; a * also matches dots.",
        ),
    ]
    level: Annotated[
        Level, Meta(description="The highest level that the rule applies to; by default, errors pass.")
    ] = "WARNING"
    sample: Annotated[float, Meta(gt=0, le=1, description="Share of the events that pass, chosen at random.")] = 1.0
    per_second: (
        Annotated[float, Meta(gt=0, le=1e9, description="Events of a channel that pass in a second, on average.")]
        | None
    ) = None
    burst: (
        Annotated[float, Meta(ge=1, le=1e9, description="Events that may pass at once; by default, those of a second.")]
        | None
    ) = None

    def __post_init__(self) -> None:
        if self.sample == 1 and self.per_second is None:
            raise ValueError("holds nothing back: set sample below 1, or per_second")
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
        if now > self.filled_at:  # another thread may have passed a later time
            tokens = self.tokens + (now - self.filled_at) * self.per_second
            self.tokens = tokens if tokens < self.burst else self.burst
            self.filled_at = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


class _ChannelLimit:
    """The limits of one channel at one level. The channel's levels share ``bucket``."""

    __slots__ = ("bucket", "channel", "sample", "used")

    def __init__(self, channel: str, sample: float, bucket: _Bucket | None) -> None:
        self.channel = channel
        self.sample = sample
        self.bucket = bucket
        self.used = True


class Volume:
    """Decides which events pass, and counts the others. Thread-safe; the child of a fork counts anew.

    Args:
        rules: the first rule that matches an event's channel and level applies; other events pass.
        interval: seconds between two reports of held-back events.
        max_channels: number of channels with their own limits and counts; further ones share one. A channel without
            events for an interval is dropped.
        clock: returns monotonic seconds.
        wall: returns seconds since the epoch, for reports.
        seed: makes the sampling repeatable.

    Raises:
        ConfigError: a rule or the interval is invalid; ``path`` names it.
    """

    def __init__(
        self,
        rules: Iterable[VolumeRule | Mapping[str, Any]],
        interval: float = 60.0,
        *,
        max_channels: int = 1000,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        seed: int | None = None,
    ) -> None:
        if not 0 < interval < float("inf"):
            raise ConfigError(f"{interval!r} is no number of seconds above 0", path="$.interval")
        read = [rule if isinstance(rule, VolumeRule) else _read(rule, number) for number, rule in enumerate(rules)]
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
        self._limits: dict[str, dict[str, _ChannelLimit]] = {level: {} for level in _LEVELS}
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
        """Return whether an event passes, and count it if not."""
        limit = self._limits[level].get(channel) or self._limit_of(channel, level)
        limit.used = True
        if limit.sample < 1 and self._random.random() >= limit.sample:
            with self._lock:
                self._held.setdefault((limit.channel, level), [0, 0])[0] += 1
            return False
        if limit.bucket is not None:
            now = self._clock()
            with self._lock:
                if not limit.bucket.take(now):
                    self._held.setdefault((limit.channel, level), [0, 0])[1] += 1
                    return False
        return True

    def rate(self, channel: str, level: str) -> float:
        """Return the share of a channel's events that pass the sampling, above 0 and up to 1.

        An event with a rate below 1 stands for ``1 / rate`` events. The logger writes the rate as ``sample_rate`` into
        the event's context.
        """
        limit = self._limits[level].get(channel) or self._limit_of(channel, level)
        return limit.sample

    def due(self) -> bool:
        """Return whether the interval since the last report has passed."""
        return self._clock() >= self._due_at

    def take(self) -> dict[str, Any] | None:
        """Return a ``held_back`` payload for the time since the last call; None if no event was held back."""
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

    def _limit_of(self, channel: str, level: str) -> _ChannelLimit:
        with self._lock:
            limit = self._limits[level].get(channel)
            if limit is not None:  # another thread was faster
                return limit
            number, rule = self._rule(channel, level)
            name = channel
            if channel not in self._channels:
                if len(self._channels) < self._max_channels:
                    self._channels.add(channel)
                elif rule is None:
                    return _FREE
                else:
                    name = f"{REST}{number}"  # one for each rule
                    limit = self._limits[level].get(name)
                    if limit is not None:
                        return limit
            if rule is None:
                limit = _ChannelLimit(channel, 1.0, None)
            else:
                bucket = self._bucket(rule, number, name)
                limit = _ChannelLimit(channel if name is channel else REST, rule.sample, bucket)
            self._limits[level][name] = limit
            return limit

    def _rule(self, channel: str, level: str) -> tuple[int, VolumeRule | None]:
        place = _LEVELS.index(level)
        for number, (pattern, highest, rule) in enumerate(self._rules):
            if place <= highest and pattern.match(channel):
                return number, rule
        return -1, None

    def _bucket(self, rule: VolumeRule, number: int, name: str) -> _Bucket | None:
        if rule.per_second is None:
            return None
        bucket = self._buckets.get((number, name))
        if bucket is None:
            burst = rule.burst if rule.burst is not None else max(1.0, rule.per_second)
            bucket = self._buckets[number, name] = _Bucket(rule.per_second, burst, self._clock())
        return bucket

    def _forget_silent(self) -> None:
        """Drop channels without events since the last report."""
        used = {name for limits in self._limits.values() for name, limit in limits.items() if limit.used}
        for limits in self._limits.values():
            for name in [name for name in limits if name not in used]:
                del limits[name]
            for limit in limits.values():
                limit.used = False
        self._channels &= used
        self._buckets = {key: bucket for key, bucket in self._buckets.items() if key[1] in used}


_FREE = _ChannelLimit(REST, 1.0, None)


def _read(rule: Any, number: int) -> VolumeRule:
    try:
        return msgspec.convert(rule, VolumeRule)
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
