"""Levels of channels by pattern."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta

from balog.common.errors import ConfigError
from balog.event import LEVELS, Level, parse_level

OFF = 100
"""The threshold that no level reaches."""

Pattern = Annotated[str, Meta(min_length=1, max_length=1000)]

_WILDCARDS = re.compile(r"\[[^\]]+\]|[*?]")
_MAX_KNOWN = 1000
_MAX_KNOWN_NAME = 256


class ChannelLevels:
    """The thresholds of channels by pattern.

    A pattern is a channel, or has wildcards as in a shell: ``*`` (which matches dots), ``?`` and ``[…]``. A channel and
    ``CHANNEL.*`` both cover that channel and all channels below it. If several patterns cover a channel, the most
    specific one wins: the channel itself, then the pattern with the most characters besides wildcards and a final
    ``.*``, then the last.

    Args:
        levels: the number of the lowest level that is written, by pattern.
    """

    def __init__(self, levels: Mapping[str, int]) -> None:
        self.thresholds = dict(levels)
        ranked = sorted(
            enumerate(levels.items()),
            key=lambda item: (len(_WILDCARDS.sub("", item[1][0].removesuffix(".*"))), item[0]),
            reverse=True,
        )
        self._patterns = [(_compile(pattern), threshold) for _, (pattern, threshold) in ranked]
        self._known: dict[str, int | None] = {}

    def of(self, channel: str) -> int | None:
        """Return the threshold of a channel; None if no pattern covers it."""
        try:
            return self._known[channel]
        except KeyError:
            pass
        threshold = self.thresholds.get(channel)
        if threshold is None:
            threshold = next((level for pattern, level in self._patterns if pattern.match(channel)), None)
        if len(channel) <= _MAX_KNOWN_NAME:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            self._known[channel] = threshold
        return threshold


def _compile(pattern: str) -> re.Pattern[str]:
    text = fnmatch.translate(pattern)
    if not _WILDCARDS.search(pattern):
        text += "|" + fnmatch.translate(f"{pattern}.*")
    elif pattern.endswith(".*"):
        text += "|" + fnmatch.translate(pattern[:-2])
    return re.compile(text)


def parse_threshold(level: int | str) -> int:
    """Return the threshold of a level's name, ``off``, or a number of the standard library.

    Raises:
        ConfigError: there is no such level.
    """
    if isinstance(level, str):
        if level.upper() == "OFF":
            return OFF
        name = parse_level(level) if level.isascii() else None
        if name is not None:
            return LEVELS[name]
    elif isinstance(level, int) and not isinstance(level, bool) and level > 0:
        return min(level, OFF)
    raise ConfigError(f"no level {str(level)[:40]!r}; there are {', '.join(LEVELS)}, OFF")


def find_level(level: object) -> Level | None:
    """Return the level of a name, or of the standard library's number rounded down; None for other values."""
    try:
        if isinstance(level, str):
            return parse_level(level)
        return next((name for name, number in _FROM_THE_TOP if level >= number), None)  # type: ignore[operator]
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # never lose an event because of its level
        return None


def level_of(level: object) -> Level:
    """Return the level of a name or of the standard library's number; INFO for other values."""
    return find_level(level) or "INFO"


_FROM_THE_TOP: tuple[tuple[Level, float], ...] = (
    *(("CRITICAL", 50), ("ERROR", 40), ("WARNING", 30), ("INFO", 20)),
    ("DEBUG", float("-inf")),  # and nan is no level
)
